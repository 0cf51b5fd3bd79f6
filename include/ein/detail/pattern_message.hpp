// The words for every mistake that a pattern can hold whatever the shapes are, for run-time errors
// and for compilers that can print a composed text.
#pragma once

#include <algorithm>
#include <utility>

#include <ein/axis.hpp>
#include <ein/error.hpp>
#include <ein/grammar/check.hpp>
#include <ein/grammar/match.hpp>
#include <ein/grammar/show_pattern.hpp>

namespace ein::grammar {

struct Words {
  ErrorKind kind = ErrorKind::pattern;
  Text headline;
  Text help{};
};

namespace detail {

constexpr std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  const std::size_t begin = (std::min)(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

constexpr Text counted(std::size_t n, std::string_view what) {
  return number_text(static_cast<std::int64_t>(n)) + " " + what + (n == 1 ? "" : "s");
}

/// One character: in quotes, or by its code where it is no visible one of ASCII.
constexpr Text shown_character(std::string_view text) {
  const char32_t character = grammar::decode_utf8(text, 0).value;
  if (character >= 0x20 && character < 0x7F) return quoted(text);
  Text code = "U+";
  for (int shift = character > 0xFFFFF ? 20 : character > 0xFFFF ? 16 : 12; shift >= 0; shift -= 4)
    code.add("0123456789ABCDEF"[(character >> shift) % 16]);
  return code;
}

/// Levenshtein's distance: insertions, deletions and replacements of bytes from `a` to `b`.
constexpr std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row;
  for (std::size_t j = 0; j <= b.size(); ++j) row.push_back(j);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = (std::min)({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// The distinct axis names of some sides, in the order of the pattern.
constexpr std::vector<std::string_view> axis_names(const Pattern& pattern,
                                                   std::span<const Side> sides) {
  std::vector<std::string_view> names;
  for (const Side& side : sides) {
    for (const Term& term : pattern.terms.subspan(side.first, side.last - side.first)) {
      const std::string_view name = pattern.name_of(term);
      if (term.kind != TermKind::name) continue;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

/// A help line for a name that is none of `names`: the likeliest one meant, or else what
/// `otherwise` says.
constexpr Text did_you_mean(std::string_view name, const std::vector<std::string_view>& names,
                            const Text& otherwise) {
  constexpr std::size_t longest = 64;  // what no person typed is not worth the time
  std::size_t best = std::min<std::size_t>(name.size() / 3 + 1, 3) + 1;
  std::string_view closest;
  for (std::string_view candidate : names) {
    if (name.size() > longest || candidate.size() > longest) continue;
    const std::size_t distance = edit_distance(name, candidate);
    // A name none of whose letters fit is another name, not a slip.
    if (distance >= best || distance >= (std::max)(name.size(), candidate.size())) continue;
    best = distance;
    closest = candidate;
  }
  return closest.empty() ? otherwise : "help: did you mean " + quoted(closest) + "?";
}

/// The last name between two places, or what could stand there.
constexpr Text last_name(const Pattern& pattern, SourceSpan span) {
  Text last = "axis";
  for (const Term& term : pattern.terms) {
    const bool is_inside = span.begin <= term.span.begin && term.span.end <= span.end;
    if (is_inside && term.kind == TermKind::name) last = pattern.name_of(term);
  }
  return last;
}

/// A glued pattern with its letters apart: "ij,jk->ik" is "i j, j k -> i k".
constexpr Text with_names_apart(const Pattern& pattern) {
  Text text;
  for (std::size_t s = 0; s < pattern.sides.size(); ++s) {
    if (s > 0) text.add(s == pattern.inputs().size() ? " ->" : ",");
    for (const Term& term : pattern.terms_of(pattern.sides[s])) {
      const std::string_view word = pattern.text_of(term.span);
      if (term.kind != TermKind::name) {
        text.add(" ");
        text.add(word);
        continue;
      }
      for (char letter : word) {
        text.add(" ");
        text.add(letter);
      }
    }
  }
  return text.view().empty() ? text : Text(text.view().substr(text.view()[0] == ' '));
}

/// A group with `placed` behind the name of its outermost axis, and not where it stands: "(h d)@x"
/// and "(h d@x)" are "(h@x d)". Empty where the outermost axis has no name.
constexpr Text with_outermost_placed(const Pattern& pattern, std::uint32_t group,
                                     SourceSpan placed) {
  const Term* const outermost = pattern.outermost_axis(group);
  if (!outermost || outermost->kind != TermKind::name) return {};
  const SourceSpan all = pattern.terms[group].span;
  const std::uint32_t at = (std::max)(outermost->span.end, outermost->placed.end);
  return Text(pattern.text_of({all.begin, at})) + pattern.text_of(placed) +
         pattern.text_of({at, (std::min)(placed.begin, all.end)}) +
         pattern.text_of({(std::min)(placed.end, all.end), all.end});
}

inline constexpr std::string_view brace_help =
    "help: terms such as 'y', '2*y' and '3' are joined by '+' and '-': '{2*y + ky - 1}'";

/// Whether a brace opens before `span` and is not closed before it.
constexpr bool is_in_a_brace(const Pattern& pattern, SourceSpan span) {
  const std::size_t open = pattern.text.substr(0, span.begin).rfind('{');
  const std::size_t close = pattern.text.substr(0, span.begin).rfind('}');
  return open != std::string_view::npos && (close == std::string_view::npos || close < open);
}

/// Whether the word at `span` is an axis whose size the pattern says.
constexpr bool says_size(const Pattern& pattern, SourceSpan span) {
  for (const Term& term : pattern.terms) {
    if (term.kind == TermKind::name && term.value > 0 && term.span == span) return true;
  }
  return false;
}

/// How to place a group that `mistake` is about, or a part of it.
constexpr Text placed_group_help(const Pattern& pattern, const Mistake& mistake) {
  for (std::uint32_t i = 0; i < pattern.terms.size(); ++i) {
    const Term& group = pattern.terms[i];
    if (group.kind != TermKind::group || group.span.begin > mistake.span.begin ||
        (group.span.begin < mistake.span.begin && group.span.end < mistake.span.end))
      continue;
    SourceSpan placed{group.span.end, mistake.span.end};
    for (std::uint32_t j = i + 1; j < group.next; ++j) {
      if (pattern.terms[j].span.begin == mistake.span.begin) placed = pattern.terms[j].placed;
    }
    const Text right =
        placed.begin < placed.end ? with_outermost_placed(pattern, i, placed) : Text();
    if (!right.empty()) return "help: write " + quoted(right.view());
    break;
  }
  return "help: write '@' behind the name of the group's outermost axis";
}

constexpr Text list_axes(const std::vector<std::string_view>& names) {
  if (names.empty()) return "help: the pattern has no named axes";
  Text list = "help: the pattern's axes are ";
  for (std::size_t i = 0; i < names.size(); ++i) list = list + (i ? ", " : "") + quoted(names[i]);
  return list;
}

}  // namespace detail

/// `given` are the axis sizes of the call; `sizes_known` is false where only their names are.
constexpr Words words_for(Operation op, const Pattern& read, const Mistake& mistake,
                          std::span<const AxisSize> given, bool sizes_known = true) {
  const std::string_view text = read.text_of(mistake.span);
  const Text here = quoted(detail::without_blanks(text));
  const Text op_name = name(op);
  // `mistake.argument` counts numbers, or sizes.
  const auto argument = [&]() -> const AxisSize& {
    const bool is_number = mistake.complaint == Complaint::number_is_not_of_the_pattern ||
                           mistake.complaint == Complaint::number_is_given_twice;
    std::size_t at = 0;
    for (std::int64_t left = mistake.argument; given[at].is_number != is_number || left-- > 0;)
      ++at;
    return given[at];
  };
  const Text repeat_help =
      op == Operation::rearrange || op == Operation::reduce ? "help: repeat makes new axes" : "";
  const Text lost_help =
      op == Operation::gather ? "help: only the axis in brackets goes; reduce removes others"
      : op == Operation::map  ? "help: say a reduction after the function, such as \"sum\""
                              : "help: reduce removes axes";
  using enum ErrorKind;
  switch (mistake.complaint) {
    case Complaint::none:
      break;
    case Complaint::pattern_is_too_long:
      return {syntax, "the pattern is longer than " + number_text(max_pattern_bytes) + " bytes"};
    case Complaint::unexpected_character:
      return {
          syntax, "unexpected character " + detail::shown_character(text),
          "help: a pattern has axis names, numbers, '...', '( )', '[ ]', '{ }', '@', ',' and '->'"};
    case Complaint::text_is_not_utf8:
      return {syntax, "the pattern is not valid UTF-8 here"};
    case Complaint::axis_name_begins_with_a_digit:
      return {syntax, "axis name " + here + " begins with a digit"};
    case Complaint::axis_name_begins_or_ends_with_underscore:
      return {syntax, "axis name " + here + " begins or ends with '_'"};
    case Complaint::ellipsis_is_not_three_dots:
      return {syntax, "an ellipsis is three dots, '...'"};
    case Complaint::words_touch:
      return {syntax, here + " is not an axis name", "help: put spaces around '...' and '*'"};
    case Complaint::number_is_zero:
      return {syntax, detail::is_in_a_brace(read, mistake.span)
                          ? "a coefficient of 0 reads one place alone"
                          : "an anonymous axis has a size of at least 1"};
    case Complaint::number_is_too_large:
      return {overflow, "the number " + here + " is too large"};
    case Complaint::parenthesis_is_not_closed:
      return {syntax, "'(' is never closed"};
    case Complaint::parenthesis_closes_nothing:
      return {syntax, "')' closes nothing"};
    case Complaint::groups_are_nested_too_deeply:
      return {syntax, "groups are nested more than " + number_text(max_group_depth) + " deep"};
    case Complaint::bracket_is_not_closed:
      return {syntax, "'[' is never closed"};
    case Complaint::bracket_closes_nothing:
      return {syntax, "']' closes nothing"};
    case Complaint::brackets_are_empty:
      return {syntax, "brackets '[ ]' hold no axis"};
    case Complaint::brackets_are_nested:
      return {syntax, "brackets are inside brackets"};
    case Complaint::group_is_inside_brackets:
      return {syntax, "a group is inside brackets", "help: name its axes one by one: '[h w]'"};
    case Complaint::sum_is_outside_parentheses:
      return {syntax, "a sum of axes stands in parentheses: '(a + b)'",
              "help: a function of indices stands in braces: '{y + ky}'"};
    case Complaint::piece_is_missing:
      return {syntax, "a piece is missing beside '+'"};
    case Complaint::piece_is_several_axes:
      return {syntax, "a piece of a sum is one axis, or a group of them",
              "help: write '(" + Text(detail::without_blanks(text)) + ")'"};
    case Complaint::brace_is_not_closed:
      return {syntax, "'{' is never closed"};
    case Complaint::brace_closes_nothing:
      return {syntax, "'}' closes nothing"};
    case Complaint::brace_is_empty:
      return {syntax, "braces '{ }' hold no index", detail::brace_help};
    case Complaint::brace_is_inside_brackets:
      return {syntax, "braces are inside brackets"};
    case Complaint::index_is_malformed:
      return {syntax, here + " does not fit into an index in braces", detail::brace_help};
    case Complaint::coefficient_is_no_number:
      return {syntax, "a number stands left of '*', or its name, and an axis right of it",
              detail::brace_help};
    case Complaint::arrow_is_malformed:
      return {syntax, "an arrow is written '->'"};
    case Complaint::arrow_is_repeated:
      return {syntax, "'->' is written twice"};
    case Complaint::mesh_axis_is_missing:
      return {syntax, "the name of a mesh axis follows '@' at once",
              "help: write 'b@data' for an axis 'b' and a mesh axis 'data'"};
    case Complaint::placed_axis_is_missing:
      return {syntax, "'@' follows the name of an axis at once",
              "help: write 'b@data' for an axis 'b' and a mesh axis 'data'"};
    case Complaint::only_a_named_axis_is_placed:
      return {syntax, here + ": only an axis with a name is placed",
              "help: write the name of the axis before '@'"};
    case Complaint::group_is_placed:
      return {syntax, "a group is not placed, its outermost axis is",
              detail::placed_group_help(read, mistake)};
    case Complaint::axis_size_is_no_number:
      return {syntax, "the size of an axis is a number that follows '=' at once",
              "help: write 'h=4', or give the size beside the pattern"};
    case Complaint::only_a_named_axis_has_a_size:
      return {syntax, "'=' follows the name of an axis at once", "help: write 'h=4'"};
    case Complaint::arrow_is_missing:
      return {ErrorKind::pattern, "the pattern has no '->'",
              "help: write the axes of the result after '->'"};
    case Complaint::arrow_is_not_wanted:
      return {ErrorKind::pattern, "the pattern takes no '->'",
              op == Operation::pack || op == Operation::unpack
                  ? "help: it names the axes of the packed tensor, nothing else"
              : op == Operation::place
                  ? "help: it says where each axis of the operand lies, nothing else"
                  : "help: it names the axes of the operand, nothing else"};
    case Complaint::comma_after_the_arrow:
      return {ErrorKind::pattern, "',' after the arrow: " + op_name + " has one result",
              "help: rearrange has several: it splits a sum of axes, '(a + b) c -> a c, b c'"};
    case Complaint::call_has_one_result:
      return {ErrorKind::pattern, "the pattern has several outputs, the call one result",
              "help: write \"...\"_p for an array of results; rearrange_all gives a vector"};
    case Complaint::number_of_operands_differs: {
      const Text described =
          "the pattern describes " + detail::counted(read.inputs().size(), "operand");
      if (form_of(op).operands == Form::any_number) {
        return {arity, described + ", the call has " + number_text(mistake.argument)};
      }
      if (op == Operation::pack)
        return {arity, described + ", pack wants one pattern for them all"};
      return {arity, described + ", " + op_name + " takes " +
                         number_text(static_cast<std::int64_t>(form_of(op).operands))};
    }
    case Complaint::unnamed_axis_is_not_allowed:
      return {ErrorKind::pattern,
              "the unnamed axis '_' is for inputs of einsum and for parse_shape"};
    case Complaint::packed_axes_are_not_allowed:
      return {ErrorKind::pattern, "'*' is for pack and unpack"};
    case Complaint::packed_axes_are_missing:
      return {ErrorKind::pattern, "the pattern has no '*'",
              "help: '*' stands for the axes that are packed"};
    case Complaint::packed_axes_are_repeated:
      return {ErrorKind::pattern, "'*' is written twice"};
    case Complaint::many_axes_are_not_allowed:
      return {ErrorKind::pattern, op_name + " has '*' alone for many axes"};
    case Complaint::group_is_not_allowed:
      return {ErrorKind::pattern, "a group '( )' has no meaning here",
              form_of(op).has_groups
                  ? "help: a name says the same; '(h [d])' has brackets in a group"
                  : ""};
    case Complaint::number_is_not_allowed:
      return {ErrorKind::pattern, "a number has no meaning here"};
    case Complaint::brace_is_not_allowed:
      return {ErrorKind::pattern, "braces '{ }' have no meaning here",
              "help: einsum, reduce, rearrange and map read at functions of indices"};
    case Complaint::brace_is_inside_a_group:
      return {ErrorKind::pattern, "braces are inside a group: they are a whole dimension",
              "help: split the dimension first, with rearrange"};
    case Complaint::sum_is_not_allowed:
      return {ErrorKind::pattern, "a sum of axes has no meaning here",
              "help: rearrange joins and splits, einsum and reduce compute piece by piece"};
    case Complaint::piece_is_no_axis:
      return {ErrorKind::pattern, here + " is no piece of a sum",
              "help: a piece is a name, a number, or a group '(h d)' of them"};
    case Complaint::brackets_are_not_allowed:
      return {ErrorKind::pattern, form_of(op).brackets == Form::no_brackets
                                      ? Text("brackets '[ ]' have no meaning here")
                                  : form_of(op).brackets == Form::axis_of_the_output
                                      ? "the axis in brackets must be one of the output's"
                                      : "the axis in brackets must be one of the first operand's"};
    case Complaint::brackets_are_missing:
      return {ErrorKind::pattern, "the pattern has no axis in brackets",
              "help: put the axis of " + op_name + " in brackets: '[" +
                  detail::last_name(read, mistake.span) + "]'"};
    case Complaint::one_axis_in_brackets_is_wanted:
      return {ErrorKind::pattern,
              "one name or number is wanted in brackets: " + op_name + " goes along one axis"};
    case Complaint::rows_and_columns_in_brackets_are_wanted:
      return {ErrorKind::pattern,
              "two names are wanted in brackets, the rows and the columns of a matrix",
              op == Operation::solve || op == Operation::lstsq
                  ? "help: " + op_name + "(a, b, \"[n m], [n] k -> [m] k\")"
                  : "help: " + op_name + "(x, \"b [i j]\")"};
    case Complaint::rows_in_brackets_are_wanted:
      return {ErrorKind::pattern,
              "the second operand must have the rows of the matrix in brackets, '[" +
                  Text(read.text_of(mistake.other)) + "]'"};
    case Complaint::columns_in_brackets_are_wanted:
      return {ErrorKind::pattern, "the result must have the columns of the matrix in brackets, '[" +
                                      Text(read.text_of(mistake.other)) + "]'"};
    case Complaint::two_axes_in_brackets_are_wanted:
      return {ErrorKind::pattern, "two names or numbers are wanted in brackets: " + op_name +
                                      " is of rows and columns"};
    case Complaint::brackets_are_inside_a_group:
      return {ErrorKind::pattern,
              "brackets are inside a group: " + op_name + " puts two axes in the place of one",
              "help: split the group first, with rearrange"};
    case Complaint::ellipsis_is_repeated:
      return {ErrorKind::pattern, "'...' is written twice on one side"};
    case Complaint::ellipsis_is_inside_a_group_of_an_input:
      return {ErrorKind::pattern, "'...' is inside a group of an input",
              "help: a group may hold '...' only after the arrow"};
    case Complaint::ellipsis_of_the_output_is_in_no_input:
      return {ErrorKind::pattern, "'...' of the output is in no input"};
    case Complaint::ellipsis_of_the_input_is_lost:
      return {ErrorKind::pattern, "'...' is lost: the output has none", lost_help};
    case Complaint::axis_is_repeated: {
      const bool in_input = form_of(op).brackets == Form::no_brackets && read.has_arrow() &&
                            !is_of_a_mesh(op) && mistake.span.begin < read.outputs()[0].span.begin;
      return {ErrorKind::pattern, "axis " + here + " is repeated",
              in_input ? "help: einsum takes diagonals, 'i i -> i'" : ""};
    }
    case Complaint::name_is_of_one_axis_and_of_many:
      return {ErrorKind::pattern, here + " is one axis here, and any number of them elsewhere",
              "help: write '*" + Text(text) + "' everywhere"};
    case Complaint::axis_of_the_output_is_in_no_input:
      return {ErrorKind::pattern, "axis " + here + " of the output is in no input",
              detail::did_you_mean(text, detail::axis_names(read, read.inputs()), repeat_help)};
    case Complaint::axis_names_are_glued:
      return {ErrorKind::pattern,
              "axis names are glued together: write `" + detail::with_names_apart(read) + "`",
              "help: an axis has a name of any length, so blanks separate them"};
    case Complaint::axis_of_the_input_is_lost:
      return {ErrorKind::pattern, "axis " + here + " is lost: the output lacks it", lost_help};
    case Complaint::axis_is_summed_alone:
      return {
          ErrorKind::pattern,
          mistake.other.end == 0 ? "axis " + here + " is summed alone: no other operand has it"
                                 : "axes " + here + " and " + quoted(read.text_of(mistake.other)) +
                                       " are summed alone: each is in one operand",
          "help: write '_' for an axis that is to be summed alone, or reduce its operand first"};
    case Complaint::anonymous_axis_of_the_input_is_lost:
      return {ErrorKind::pattern,
              "anonymous axis " + here + " is lost: each number is an axis of its own",
              "help: name the axis and give its size"};
    case Complaint::anonymous_axis_of_the_output_is_in_no_input:
      return {ErrorKind::pattern, "anonymous axis " + here + " of the output is in no input",
              repeat_help};
    case Complaint::piece_comes_from_nowhere:
      return {
          ErrorKind::pattern, "piece " + here + " comes from no operand",
          "help: a piece is what an operand, or a piece of it, names; a number takes an operand "
          "that names none"};
    case Complaint::piece_goes_nowhere:
      return {ErrorKind::pattern, "piece " + here + " goes to no output",
              "help: rearrange splits a sum into several outputs, '(a + b) c -> a c, b c'"};
    case Complaint::operand_goes_nowhere:
      return {ErrorKind::pattern,
              "operand " + number_text(mistake.argument + 1) + " goes to no output",
              "help: an output, or a piece of it, has all axes of its operand"};
    case Complaint::sums_have_too_many_cases:
      return {ErrorKind::pattern,
              "the sums of axes have more than " + number_text(max_cases) + " cases"};
    case Complaint::axis_in_brackets_is_elsewhere:
      return {ErrorKind::pattern,
              form_of(op).brackets == Form::axis_of_the_output
                  ? "axis " + here + " in brackets is new: no operand has it"
              : form_of(op).brackets == Form::matrix_of_the_input
                  ? mistake.span.begin < read.output().span.begin
                        ? "axis " + here + " is the columns of the matrix, which the result has"
                        : "axis " + here + " is the rows of the matrix, which the result lacks"
                  : "axis " + here + " in brackets is the first operand's alone",
              "help: give one of the two another name"};
    case Complaint::axes_are_in_another_order:
      return {ErrorKind::pattern, op_name + " keeps the order of the axes",
              "help: rearrange changes it"};
    case Complaint::mesh_axis_is_repeated:
      return {ErrorKind::pattern, "a mesh axis splits one axis of a tensor, and that once"};
    case Complaint::inner_axis_of_a_group_is_placed:
      return {
          ErrorKind::pattern,
          here + " is not the outermost axis of its group: parts of it are no parts of the group",
          detail::placed_group_help(read, mistake) + ", or rearrange first"};
    case Complaint::piece_is_placed:
      return {ErrorKind::pattern, here + ": a piece of a sum is not split over a mesh",
              "help: reshard first"};
    case Complaint::axis_is_placed_differently:
      return {ErrorKind::pattern, "axis " + here + " is placed differently",
              "help: an axis lies alike in all operands and in the result"};
    case Complaint::number_is_missing:
      return {axis_argument, "number " + here + " needs a value",
              "help: pass it with the call, \"" + Text(text) +
                  "\"_n = ...; an axis stands right of '*'"};
    case Complaint::number_is_an_axis:
      return {axis_argument, here + " is given as a number, and stands here for an axis",
              "help: give one of the two another name"};
    case Complaint::number_is_not_of_the_pattern:
      return {axis_argument, "number " + quoted(argument().name) +
                                 " is given, which no braces of the pattern have"};
    case Complaint::number_is_given_twice:
      return {axis_argument, "number " + quoted(argument().name) + " is given twice"};
    case Complaint::axis_size_is_not_of_the_pattern: {
      const std::vector<std::string_view> names = detail::axis_names(read, read.sides);
      return {axis_argument,
              "a size is given for axis " + quoted(argument().name) +
                  ", which the pattern does not have",
              detail::did_you_mean(argument().name, names, detail::list_axes(names))};
    }
    case Complaint::axis_size_is_given_twice: {
      const auto first = std::find_if(given.begin(), given.end(), [&](const AxisSize& size) {
        return size.name == argument().name;
      });
      Text what = "the size of axis " + quoted(argument().name) + " is given twice";
      if (sizes_known && first->size.is_number() && argument().size.is_number())
        what = what + ": " + number_text(first->size) + " and " + number_text(argument().size);
      return {axis_argument, what};
    }
    case Complaint::axis_size_is_missing:
      return {axis_argument, "new axis " + here + " needs a size",
              "help: pass it with the call, \"" + Text(text) + "\"_a = ..."};
    case Complaint::group_has_more_than_one_unknown_size:
      return {inference, "more than one size is unknown in " + here,
              "help: give the sizes of all axes of the group but one"};
    case Complaint::sum_has_more_than_one_unknown_size:
      return {inference, "more than one size is unknown in " + here,
              "help: give the sizes of all pieces of the sum but one"};
    case Complaint::brace_has_more_than_one_unknown_size:
      return {inference, "more than one size is unknown in " + here,
              "help: give the sizes of all axes of the braces but one"};
    case Complaint::type_is_malformed:
      return {syntax, "the axes of an operand's type are malformed here"};
    case Complaint::operand_has_another_rank_than_the_pattern:
      return {rank, "operand " + number_text(mistake.argument + 1) +
                        " has, by its type, another number of axes than the pattern"};
    case Complaint::axis_has_two_sizes:
      return {size, here + (detail::says_size(read, mistake.span)
                                ? " has two sizes: the pattern says one"
                                : " has two sizes by the operands' types")};
    case Complaint::axis_has_two_types:
      return {size, here + " has two names by the operands' types"};
    case Complaint::axis_is_not_of_size_one:
      return {size, "an axis of size 1 is wanted, the operand's type has another size there"};
    case Complaint::group_has_another_size_than_its_axes:
      return {size, here + " has another size by the operand's type than by its axes"};
    case Complaint::group_cannot_be_split_evenly:
      return {divisibility, "axis " + here + " cannot be split evenly, by the operand's type"};
    case Complaint::sum_has_another_size_than_its_pieces:
      return {size, here + " has another size by the operand's type than by its pieces"};
    case Complaint::brace_reads_nothing:
      return {size, here + " reads nothing inside, by the operand's type",
              "help: a constant '- p' reads p places before and behind the tensor"};
    case Complaint::operands_have_different_dtypes:
      return {dtype,
              "operand " + number_text(mistake.argument + 1) +
                  " has another dtype than those before it",
              "help: cast one with .to(dtype)"};
    case Complaint::reduction_wants_a_floating_point_dtype:
      return {dtype, "the reduction is defined for floating-point dtypes only",
              "help: cast first, x.to(ein::DType::f32)"};
  }
  return {};
}

/// The places that a mistake is about, in the order of the text.
constexpr std::vector<Mark> places_of(const Pattern& pattern, const Mistake& mistake,
                                      std::span<const AxisSize> given) {
  switch (mistake.complaint) {
    case Complaint::axis_size_is_not_of_the_pattern:
    case Complaint::number_is_not_of_the_pattern:
    case Complaint::number_is_given_twice:
    case Complaint::operands_have_different_dtypes:
      return {};
    case Complaint::axis_size_is_given_twice: {
      std::int64_t left = mistake.argument;
      const auto size = std::find_if(given.begin(), given.end(), [&](const AxisSize& s) {
        return !s.is_number && left-- == 0;
      });
      const std::string_view name = size->name;
      const auto term = std::find_if(
          pattern.terms.begin(), pattern.terms.end(),
          [&](const Term& t) { return t.kind == TermKind::name && pattern.name_of(t) == name; });
      return {{term->span, ""}};
    }
    case Complaint::number_of_operands_differs: {
      std::vector<Mark> marks;
      for (const Side& side : pattern.inputs()) marks.push_back(mark_side(pattern, side, ""));
      return marks;
    }
    case Complaint::ellipsis_is_inside_a_group_of_an_input:
      return {{mistake.span, ""}};
    default:
      if (mistake.other.end == 0) return {{mistake.span, ""}};
      if (mistake.span.begin < mistake.other.begin)
        return {{mistake.span, ""}, {mistake.other, ""}};
      return {{mistake.other, ""}, {mistake.span, ""}};
  }
}

/// A text for static_assert, cut where it is longer than any that helps.
class StaticMessage {
 public:
  constexpr explicit StaticMessage(std::string_view text)
      : size_((std::min)(text.size(), capacity)) {
    std::copy_n(text.begin(), size_, chars_);
  }
  constexpr const char* data() const { return chars_; }
  constexpr std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t capacity = 2000;
  char chars_[capacity] = {};
  std::size_t size_;
};

/// What the Error says that `op` on a pattern of this text would throw.
constexpr StaticMessage static_message(Operation op, std::string_view text, const Mistake& mistake,
                                       std::span<const AxisSize> given, bool sizes_known) {
  const Reading reading = match_pattern(text);
  const Pattern pattern = reading.buffer.pattern(text);
  const Words words = words_for(op, pattern, mistake, given, sizes_known);
  if (mistake.complaint == Complaint::pattern_is_too_long) {
    return StaticMessage((Text(name(op)) + ": " + words.headline).view());
  }
  std::vector<Text> notes;
  if (!words.help.empty()) notes.push_back(words.help);
  const std::vector<Mark> marks = places_of(pattern, mistake, given);
  return StaticMessage(diagnostic_text(name(op), words.headline.view(), text, marks, notes).view());
}

}  // namespace ein::grammar
