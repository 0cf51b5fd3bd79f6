// Diagnostics: an Error whose text shows the pattern with carets under each place concerned.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ein/axis.hpp>
#include <ein/error.hpp>
#include <ein/shape.hpp>
#include "ein/grammar/check.hpp"
#include "ein/grammar/show_pattern.hpp"

namespace ein {

using grammar::Mark;
using grammar::mark_side;

/// Throws an Error with the headline "<op>: <what>", the marked pattern and the notes, a line each.
[[noreturn]] void fail(ErrorKind kind, std::string_view op, const std::string& what,
                       std::string_view pattern, const std::vector<Mark>& marks,
                       const std::vector<std::string>& notes = {});

/// "operand 1: (2, 3)   operand 2: (3, 4)", on as many lines as that takes.
std::string show_operands(std::span<const Shape> shapes);

/// `text` in quotes, on one line, control characters as `?`.
std::string quoted(std::string_view text);

/// "1 axis", "2 axes".
std::string count_axes(std::size_t n);

/// One mark for each dimension of a side; where there are none, one for the place where they would
/// be.
std::vector<Mark> mark_dims(const grammar::Pattern& pattern, const grammar::Side& side);

/// Throws the Error for a mistake that the grammar or the checker found.
[[noreturn]] void fail(Operation op, const grammar::Pattern& pattern,
                       const grammar::Mistake& mistake, std::span<const AxisSize> given);

}  // namespace ein
