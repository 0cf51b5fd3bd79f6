// Texts of others, such as names of files, as messages show them: control characters and what is no
// UTF-8 never reach a terminal. The rule is that of patterns (grammar/show_pattern.hpp).
#pragma once

#include <string>
#include <string_view>

#include "ein/grammar/show_pattern.hpp"

namespace ein {

/// `text` on one line: white space as blanks, control characters and bytes that are not UTF-8 as
/// `?`. Names go through this before they are put into a message, as a name may have ends of lines.
std::string printable_line(std::string_view text);

/// The same for each line of a text. Every Error's text goes through this.
std::string printable_lines(std::string_view text);

}  // namespace ein
