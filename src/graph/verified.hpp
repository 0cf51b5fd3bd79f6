// Verification after each pass.
#pragma once

namespace ein {

/// Whether what a pass gives (a graph, a program, a schedule) is verified: in debug builds, and
/// where the environment has EIN_VERIFY, as our tests have.
bool verifies_passes();

/// What a pass gives, verified if that is wanted.
template <class T>
T verified(T made) {
  if (verifies_passes()) verify(made);
  return made;
}

}  // namespace ein
