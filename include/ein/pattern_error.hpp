// pattern_error: what the compiler says about a pattern that is wrong.
//
// A literal is checked while compiling. A mistake calls one of these functions, which are not
// constexpr: the compiler stops there, names the function, and shows the line of its declaration.
#pragma once

#include <algorithm>
#include <string_view>

#include <ein/grammar/mistake.hpp>

namespace ein {

namespace pattern_error {

using Place = std::string_view;  // the words at fault

// The text
void pattern_is_too_long(Place);   // 16384 bytes at most
void unexpected_character(Place);  // there are names, numbers, ... ( ) [ ] , ->
void text_is_not_utf8(Place);
void axis_name_begins_with_a_digit(Place);
void axis_name_begins_or_ends_with_underscore(Place);
void ellipsis_is_not_three_dots(Place);  // write ...
void words_touch(Place);                 // put spaces around ... and *
void number_is_zero(Place);              // an anonymous axis has a size of at least 1
void number_is_too_large(Place);         // 63 bits at most
void parenthesis_is_not_closed(Place);
void parenthesis_closes_nothing(Place);
void groups_are_nested_too_deeply(Place);  // 32 deep at most
void bracket_is_not_closed(Place);
void bracket_closes_nothing(Place);
void brackets_are_empty(Place);
void brackets_are_nested(Place);
void brackets_are_inside_a_group(Place);  // they are around axes of a side
void group_is_inside_brackets(Place);     // they are around axes of a side
void arrow_is_malformed(Place);           // write ->
void arrow_is_repeated(Place);            // one -> per pattern
void comma_after_the_arrow(Place);        // an operation has one result

// The form that an operation wants
void arrow_is_missing(Place);             // write the axes of the result after ->
void arrow_is_not_wanted(Place);          // it names the axes of one tensor
void number_of_operands_differs(Place);   // one list of axes per operand
void unnamed_axis_is_not_allowed(Place);  // _ is for inputs of einsum, and parse_shape
void packed_axes_are_not_allowed(Place);  // * is for pack and unpack
void packed_axes_are_missing(Place);      // * stands for the axes that are packed
void packed_axes_are_repeated(Place);     // one * per pattern
void group_is_not_allowed(Place);
void number_is_not_allowed(Place);
void ellipsis_is_not_allowed(Place);         // * stands for any number of axes
void brackets_are_not_allowed(Place);        // [ ] is for softmax, gather and their like
void brackets_are_missing(Place);            // put the axis of the operation in [ ]
void one_axis_in_brackets_is_wanted(Place);  // the operation goes along one axis

// The axes
void ellipsis_is_repeated(Place);                    // one ... per side
void ellipsis_is_inside_a_group_of_an_input(Place);  // move ... out of the group
void ellipsis_of_the_output_is_in_no_input(Place);
void ellipsis_of_the_input_is_lost(Place);                // reduce removes axes
void axis_is_repeated(Place);                             // einsum takes diagonals: i i -> i
void axis_of_the_output_is_in_no_input(Place);            // repeat makes new axes
void axis_names_are_glued(Place);                         // names are apart: write i j, j k -> i k
void axis_of_the_input_is_lost(Place);                    // reduce removes axes
void anonymous_axis_of_the_input_is_lost(Place);          // each number is a new axis: name it
void anonymous_axis_of_the_output_is_in_no_input(Place);  // repeat makes new axes
void axis_in_brackets_is_elsewhere(Place);                // only one side has the axis in [ ]

// The axis sizes given beside the pattern
void axis_size_is_not_of_the_pattern(Place);  // no axis has this name
void axis_size_is_given_twice(Place);
void axis_size_is_missing(Place);                  // give its size: "k"_a = 2
void group_has_more_than_one_unknown_size(Place);  // give all sizes of the group but one

// The types of the operands
void type_is_malformed(Place);  // such as "batch seq=4 _ n+1 ..."
void operand_has_another_rank_than_the_pattern(Place);
void axis_has_two_sizes(Place);
void axis_has_two_types(Place);       // its names in the types differ
void axis_is_not_of_size_one(Place);  // 1 in a pattern wants size 1
void group_has_another_size_than_its_axes(Place);
void group_cannot_be_split_evenly(Place);
void operands_have_different_dtypes(Place);          // cast one with .to(dtype)
void reduction_wants_a_floating_point_dtype(Place);  // cast first: x.to(ein::DType::f32)
void reduction_is_unknown(Place);  // sum mean max min prod any all logsumexp var std

constexpr Place place_of(const grammar::Mistake& mistake, std::string_view text) {
  const std::size_t begin = std::min(std::size_t{mistake.span.begin}, text.size());
  return text.substr(begin, mistake.span.end - mistake.span.begin);
}

/// Calls the function named after the mistake, if there is one.
constexpr void stop_at(const grammar::Mistake& mistake, Place at) {
  using C = grammar::Complaint;
  switch (mistake.complaint) {
    case C::none:
      return;
    case C::pattern_is_too_long:
      return pattern_is_too_long(at);
    case C::unexpected_character:
      return unexpected_character(at);
    case C::text_is_not_utf8:
      return text_is_not_utf8(at);
    case C::axis_name_begins_with_a_digit:
      return axis_name_begins_with_a_digit(at);
    case C::axis_name_begins_or_ends_with_underscore:
      return axis_name_begins_or_ends_with_underscore(at);
    case C::ellipsis_is_not_three_dots:
      return ellipsis_is_not_three_dots(at);
    case C::words_touch:
      return words_touch(at);
    case C::number_is_zero:
      return number_is_zero(at);
    case C::number_is_too_large:
      return number_is_too_large(at);
    case C::parenthesis_is_not_closed:
      return parenthesis_is_not_closed(at);
    case C::parenthesis_closes_nothing:
      return parenthesis_closes_nothing(at);
    case C::groups_are_nested_too_deeply:
      return groups_are_nested_too_deeply(at);
    case C::bracket_is_not_closed:
      return bracket_is_not_closed(at);
    case C::bracket_closes_nothing:
      return bracket_closes_nothing(at);
    case C::brackets_are_empty:
      return brackets_are_empty(at);
    case C::brackets_are_nested:
      return brackets_are_nested(at);
    case C::brackets_are_inside_a_group:
      return brackets_are_inside_a_group(at);
    case C::group_is_inside_brackets:
      return group_is_inside_brackets(at);
    case C::arrow_is_malformed:
      return arrow_is_malformed(at);
    case C::arrow_is_repeated:
      return arrow_is_repeated(at);
    case C::comma_after_the_arrow:
      return comma_after_the_arrow(at);
    case C::arrow_is_missing:
      return arrow_is_missing(at);
    case C::arrow_is_not_wanted:
      return arrow_is_not_wanted(at);
    case C::number_of_operands_differs:
      return number_of_operands_differs(at);
    case C::unnamed_axis_is_not_allowed:
      return unnamed_axis_is_not_allowed(at);
    case C::packed_axes_are_not_allowed:
      return packed_axes_are_not_allowed(at);
    case C::packed_axes_are_missing:
      return packed_axes_are_missing(at);
    case C::packed_axes_are_repeated:
      return packed_axes_are_repeated(at);
    case C::group_is_not_allowed:
      return group_is_not_allowed(at);
    case C::number_is_not_allowed:
      return number_is_not_allowed(at);
    case C::ellipsis_is_not_allowed:
      return ellipsis_is_not_allowed(at);
    case C::brackets_are_not_allowed:
      return brackets_are_not_allowed(at);
    case C::brackets_are_missing:
      return brackets_are_missing(at);
    case C::one_axis_in_brackets_is_wanted:
      return one_axis_in_brackets_is_wanted(at);
    case C::ellipsis_is_repeated:
      return ellipsis_is_repeated(at);
    case C::ellipsis_is_inside_a_group_of_an_input:
      return ellipsis_is_inside_a_group_of_an_input(at);
    case C::ellipsis_of_the_output_is_in_no_input:
      return ellipsis_of_the_output_is_in_no_input(at);
    case C::ellipsis_of_the_input_is_lost:
      return ellipsis_of_the_input_is_lost(at);
    case C::axis_is_repeated:
      return axis_is_repeated(at);
    case C::axis_of_the_output_is_in_no_input:
      return axis_of_the_output_is_in_no_input(at);
    case C::axis_names_are_glued:
      return axis_names_are_glued(at);
    case C::axis_of_the_input_is_lost:
      return axis_of_the_input_is_lost(at);
    case C::anonymous_axis_of_the_input_is_lost:
      return anonymous_axis_of_the_input_is_lost(at);
    case C::anonymous_axis_of_the_output_is_in_no_input:
      return anonymous_axis_of_the_output_is_in_no_input(at);
    case C::axis_in_brackets_is_elsewhere:
      return axis_in_brackets_is_elsewhere(at);
    case C::axis_size_is_not_of_the_pattern:
      return axis_size_is_not_of_the_pattern(at);
    case C::axis_size_is_given_twice:
      return axis_size_is_given_twice(at);
    case C::axis_size_is_missing:
      return axis_size_is_missing(at);
    case C::group_has_more_than_one_unknown_size:
      return group_has_more_than_one_unknown_size(at);
    case C::type_is_malformed:
      return type_is_malformed(at);
    case C::operand_has_another_rank_than_the_pattern:
      return operand_has_another_rank_than_the_pattern(at);
    case C::axis_has_two_sizes:
      return axis_has_two_sizes(at);
    case C::axis_has_two_types:
      return axis_has_two_types(at);
    case C::axis_is_not_of_size_one:
      return axis_is_not_of_size_one(at);
    case C::group_has_another_size_than_its_axes:
      return group_has_another_size_than_its_axes(at);
    case C::group_cannot_be_split_evenly:
      return group_cannot_be_split_evenly(at);
    case C::operands_have_different_dtypes:
      return operands_have_different_dtypes(at);
    case C::reduction_wants_a_floating_point_dtype:
      return reduction_wants_a_floating_point_dtype(at);
  }
}

}  // namespace pattern_error
}  // namespace ein
