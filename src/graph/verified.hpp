// Verification after each pass.
#pragma once

#include <utility>

namespace ein {

/// Whether what a pass gives (a graph, a program, a schedule) is verified: in debug builds, and
/// where the environment has EIN_VERIFY, as our tests have.
bool verifies_passes();

/// Returns `made`, after verify(made, of...) where passes are verified.
template <class T, class... Of>
T&& verified(T&& made, const Of&... of) {
  if (verifies_passes()) verify(made, of...);
  return std::forward<T>(made);
}

}  // namespace ein
