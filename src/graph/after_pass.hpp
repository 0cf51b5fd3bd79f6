// What happens after each pass: what it made is printed, where somebody asked for it, and verified.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace ein {

/// Whether what a pass gives (a graph, a program, a schedule) is verified: in debug builds, and
/// where the environment has EIN_VERIFY, as our tests have.
bool verifies_passes();

/// Whether EIN_PRINT in the environment has the name of this pass, or "all".
bool prints_pass(std::string_view pass);
/// Writes "== PASS", the text and an empty line to the standard error.
void print_pass(std::string_view pass, const std::string& text);

/// Returns `made` as it is, after print_pass() and verify(made, of...) where these are wanted.
template <class T, class... Of>
T&& after_pass(std::string_view pass, T&& made, const Of&... of) {
  if (prints_pass(pass)) print_pass(pass, to_string(made));
  if (verifies_passes()) verify(made, of...);
  return std::forward<T>(made);
}

}  // namespace ein
