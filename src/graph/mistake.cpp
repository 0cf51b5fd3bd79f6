// The words for every mistake that a pattern can hold whatever the shapes are.
#include "graph/diagnostic.hpp"

namespace ein {
namespace {

using grammar::Complaint;

struct Words {
  ErrorKind kind = ErrorKind::pattern;
  std::string headline;
  std::string help{};
};

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string counted(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

Words words_for(Operation op, const grammar::Pattern& read, const grammar::Mistake& mistake,
                std::span<const AxisSize> given) {
  const std::string here = quoted(read.text_of(mistake.span));
  const std::string op_name(name(op));
  const auto argument = [&] { return quoted(given[static_cast<std::size_t>(mistake.argument)].name); };
  using enum ErrorKind;
  switch (mistake.complaint) {
    case Complaint::none: break;
    case Complaint::pattern_is_too_long:
      return {syntax, "the pattern is longer than 16384 bytes"};
    case Complaint::unexpected_character:
      return {syntax, "unexpected character in the pattern",
              "help: a pattern has axis names, numbers, '...', '( )', ',' and '->'"};
    case Complaint::text_is_not_utf8: return {syntax, "the pattern is not valid UTF-8 here"};
    case Complaint::axis_name_begins_with_a_digit:
      return {syntax, "axis name " + here + " begins with a digit"};
    case Complaint::axis_name_begins_or_ends_with_underscore:
      return {syntax, "axis name " + here + " begins or ends with '_'"};
    case Complaint::ellipsis_is_not_three_dots: return {syntax, "an ellipsis is three dots, '...'"};
    case Complaint::words_touch:
      return {syntax, here + " is not an axis name", "help: put spaces around '...' and '*'"};
    case Complaint::number_is_zero: return {syntax, "an anonymous axis has a size of at least 1"};
    case Complaint::number_is_too_large: return {overflow, "the number " + here + " exceeds 63 bits"};
    case Complaint::parenthesis_is_not_closed: return {syntax, "'(' is never closed"};
    case Complaint::parenthesis_closes_nothing: return {syntax, "')' closes nothing"};
    case Complaint::groups_are_nested_too_deeply: return {syntax, "groups are nested more than 32 deep"};
    case Complaint::arrow_is_malformed: return {syntax, "an arrow is written '->'"};
    case Complaint::arrow_is_repeated: return {syntax, "a second '->'"};
    case Complaint::comma_after_the_arrow:
      return {syntax, "',' after the arrow: an operation has one result"};
    case Complaint::arrow_is_missing:
      return {ErrorKind::pattern, "the pattern has no '->'",
              "help: write the axes of the result after '->'"};
    case Complaint::arrow_is_not_wanted: return {ErrorKind::pattern, "the pattern takes no '->'"};
    case Complaint::number_of_operands_differs: {
      const std::size_t wanted = read.inputs().size();
      if (op != Operation::einsum) {
        return {arity, "the pattern describes " + counted(wanted, "operand") + ", " + op_name + " takes 1"};
      }
      return {arity, "the pattern describes " + counted(wanted, "operand") + ", the call has " +
                         std::to_string(mistake.argument)};
    }
    case Complaint::unnamed_axis_is_not_allowed:
      return {ErrorKind::pattern, "the unnamed axis '_' is for inputs of einsum and for parse_shape"};
    case Complaint::packed_axes_are_not_allowed: return {ErrorKind::pattern, "'*' is for pack and unpack"};
    case Complaint::packed_axes_are_missing:
      return {ErrorKind::pattern, "the pattern has no '*'", "help: '*' stands for the axes that are packed"};
    case Complaint::packed_axes_are_repeated: return {ErrorKind::pattern, "a second '*'"};
    case Complaint::group_is_not_allowed: return {ErrorKind::pattern, "a group '( )' has no meaning here"};
    case Complaint::number_is_not_allowed: return {ErrorKind::pattern, "a number has no meaning here"};
    case Complaint::ellipsis_is_not_allowed: return {ErrorKind::pattern, "'...' has no meaning here"};
    case Complaint::ellipsis_is_repeated: return {ErrorKind::pattern, "a second '...' on one side"};
    case Complaint::ellipsis_is_inside_a_group_of_an_input:
      return {ErrorKind::pattern, "'...' inside a group of an input",
              "help: a group may hold '...' only after the arrow"};
    case Complaint::ellipsis_of_the_output_is_in_no_input:
      return {ErrorKind::pattern, "'...' of the output is in no input"};
    case Complaint::ellipsis_of_the_input_is_lost:
      return {ErrorKind::pattern, "'...' is lost: the output has none"};
    case Complaint::axis_is_repeated: return {ErrorKind::pattern, "axis " + here + " is repeated"};
    case Complaint::axis_of_the_output_is_in_no_input:
      return {ErrorKind::pattern, "axis " + here + " of the output is in no input",
              op == Operation::rearrange ? "help: repeat makes new axes" : ""};
    case Complaint::axis_of_the_input_is_lost:
      return {ErrorKind::pattern, "axis " + here + " is lost: the output lacks it", "help: reduce removes axes"};
    case Complaint::anonymous_axis_of_the_input_is_lost:
      return {ErrorKind::pattern, "anonymous axis " + here + " is lost: each number is an axis of its own",
              "help: name the axis and give its size"};
    case Complaint::anonymous_axis_of_the_output_is_in_no_input:
      return {ErrorKind::pattern, "anonymous axis " + here + " of the output is in no input",
              op == Operation::rearrange ? "help: repeat makes new axes" : ""};
    case Complaint::axis_size_is_not_of_the_pattern:
      return {axis_argument, "a size is given for axis " + argument() + ", which the pattern does not have"};
    case Complaint::axis_size_is_given_twice:
      return {axis_argument, "the size of axis " + argument() + " is given twice"};
    case Complaint::axis_size_is_missing:
      return {axis_argument, "new axis " + here + " needs a size", "help: pass its size with the call"};
    case Complaint::group_has_more_than_one_unknown_size:
      return {inference, "more than one size is unknown in " + here,
              "help: give the sizes of all axes of the group but one"};
  }
  return {};
}

}  // namespace

void fail(Operation op, const grammar::Pattern& pattern, const grammar::Mistake& mistake,
          std::span<const AxisSize> given) {
  const Words words = words_for(op, pattern, mistake, given);
  std::vector<Mark> marks;
  const bool about_an_argument = mistake.complaint == Complaint::axis_size_is_not_of_the_pattern ||
                                 mistake.complaint == Complaint::axis_size_is_given_twice ||
                                 mistake.complaint == Complaint::pattern_is_too_long;
  if (!about_an_argument) {
    if (mistake.other.end > 0) marks.push_back({mistake.other, ""});
    marks.push_back({mistake.span, ""});
  }
  std::vector<std::string> notes;
  if (!words.help.empty()) notes.push_back(words.help);
  if (mistake.complaint == Complaint::pattern_is_too_long) {
    throw Error(words.kind, std::string(name(op)) + ": " + words.headline);
  }
  fail(words.kind, name(op), words.headline, pattern.text, marks, notes);
}

}  // namespace ein
