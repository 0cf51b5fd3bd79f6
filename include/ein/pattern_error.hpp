// pattern_error: what the compiler says about a pattern that is wrong.
//
// A literal is checked while compiling. A mistake calls one of these functions, which are not
// constexpr: the compiler stops there, names the function, and shows the line of its declaration.
#pragma once

#include <string_view>

#include <ein/grammar/mistake.hpp>

namespace ein {

namespace pattern_error {

using Place = std::string_view;  // the words at fault

// The text
void pattern_is_too_long(Place);   // 131072 bytes at most
void unexpected_character(Place);  // there are names, numbers, ... ( ) [ ] { } @ , ->
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
void group_is_inside_brackets(Place);    // they are around axes of a side
void sum_is_outside_parentheses(Place);  // write (a + b); {y + ky} is a function of indices
void piece_is_missing(Place);            // + stands between two pieces: (a + b)
void piece_is_several_axes(Place);       // put them in parentheses: (a + (b c))
void brace_is_not_closed(Place);
void brace_closes_nothing(Place);
void brace_is_empty(Place);  // it holds an index: {2*y + ky - 1}
void brace_is_inside_brackets(Place);
void index_is_malformed(Place);            // terms are joined by + and -: {2*y + ky - 1}
void coefficient_is_no_number(Place);      // a number stands left of *: {2*y}
void arrow_is_malformed(Place);            // write ->
void arrow_is_repeated(Place);             // one -> per pattern
void mesh_axis_is_missing(Place);          // its name follows @ at once: b@data
void placed_axis_is_missing(Place);        // @ follows the name of an axis at once: b@data
void only_a_named_axis_is_placed(Place);   // @ follows the name of an axis
void group_is_placed(Place);               // write @ behind its outermost axis: (h@model d)
void axis_size_is_no_number(Place);        // a number follows = at once: h=4
void only_a_named_axis_has_a_size(Place);  // = follows the name of an axis at once: h=4

// The form that an operation wants
void arrow_is_missing(Place);             // write the axes of the result after ->
void arrow_is_not_wanted(Place);          // it names the axes of one tensor
void comma_after_the_arrow(Place);        // rearrange alone has several results
void call_has_one_result(Place);          // write "..."_p, or call rearrange_all
void number_of_operands_differs(Place);   // one list of axes per operand
void unnamed_axis_is_not_allowed(Place);  // _ is for inputs of einsum, and parse_shape
void packed_axes_are_not_allowed(Place);  // * is for pack and unpack
void packed_axes_are_missing(Place);      // * stands for the axes that are packed
void packed_axes_are_repeated(Place);     // one * per pattern
void many_axes_are_not_allowed(Place);    // pack and unpack have * alone
void group_is_not_allowed(Place);         // of one operand: around an axis in brackets, (h [d])
void number_is_not_allowed(Place);
void brace_is_not_allowed(Place);            // { } is for einsum, reduce, rearrange and map
void brace_is_inside_a_group(Place);         // it is a whole dimension
void sum_is_not_allowed(Place);              // ( + ) is for rearrange, einsum and reduce
void piece_is_no_axis(Place);                // a piece is a name, a number or a group
void brackets_are_not_allowed(Place);        // [ ] is for softmax, gather and their like
void brackets_are_missing(Place);            // put the axis of the operation in [ ]
void one_axis_in_brackets_is_wanted(Place);  // the operation goes along one axis
void rows_and_columns_in_brackets_are_wanted(Place);  // the names of a matrix: [i j]
void rows_in_brackets_are_wanted(Place);              // of the second operand: those of the matrix
void columns_in_brackets_are_wanted(Place);           // of the result: those of the matrix
void two_axes_in_brackets_are_wanted(Place);          // the operation is of rows and columns
void brackets_are_inside_a_group(Place);              // a group has no place for two axes

// The axes
void ellipsis_is_repeated(Place);                    // one ... per side
void ellipsis_is_inside_a_group_of_an_input(Place);  // move ... out of the group
void ellipsis_of_the_output_is_in_no_input(Place);
void ellipsis_of_the_input_is_lost(Place);                // reduce removes axes
void axis_is_repeated(Place);                             // einsum takes diagonals: i i -> i
void name_is_of_one_axis_and_of_many(Place);              // write *batch everywhere
void axis_of_the_output_is_in_no_input(Place);            // repeat makes new axes
void axis_names_are_glued(Place);                         // write i j, j k -> i k
void axis_of_the_input_is_lost(Place);                    // reduce removes axes
void axis_is_summed_alone(Place);                         // one operand has it: write _ if meant
void anonymous_axis_of_the_input_is_lost(Place);          // each number is a new axis: name it
void anonymous_axis_of_the_output_is_in_no_input(Place);  // repeat makes new axes
void piece_comes_from_nowhere(Place);                     // an operand names it, or a piece of one
void piece_goes_nowhere(Place);                           // reduce removes axes
void operand_goes_nowhere(Place);             // an output, or a piece of it, has its axes
void sums_have_too_many_cases(Place);         // 256 cases at most
void axis_in_brackets_is_elsewhere(Place);    // only one side has the axis in [ ]
void axes_are_in_another_order(Place);        // rearrange changes the order
void mesh_axis_is_repeated(Place);            // a mesh axis splits one axis of a tensor
void inner_axis_of_a_group_is_placed(Place);  // write (h@model d), or rearrange first
void piece_is_placed(Place);                  // reshard first
void axis_is_placed_differently(Place);       // it lies alike in all operands and in the result

// The numbers and axis sizes given beside the pattern
void number_is_missing(Place);             // what stands left of * is a number: "stride"_n = 2
void number_is_an_axis(Place);             // one name is an axis or a number
void number_is_not_of_the_pattern(Place);  // no brace has this name
void number_is_given_twice(Place);
void axis_size_is_not_of_the_pattern(Place);  // no axis has this name
void axis_size_is_given_twice(Place);
void axis_size_is_missing(Place);                  // give its size: "k"_a = 2
void sum_has_more_than_one_unknown_size(Place);    // give the sizes of all pieces but one
void brace_has_more_than_one_unknown_size(Place);  // give the sizes of all axes but one
void group_has_more_than_one_unknown_size(Place);  // give all sizes of the group but one

// The types of the operands
void type_is_malformed(Place);  // such as "batch seq=4 _ n+1 ..."
void operand_has_another_rank_than_the_pattern(Place);
void axis_has_two_sizes(Place);
void axis_has_two_types(Place);       // its names in the types differ
void axis_is_not_of_size_one(Place);  // 1 in a pattern wants size 1
void group_has_another_size_than_its_axes(Place);
void group_cannot_be_split_evenly(Place);
void sum_has_another_size_than_its_pieces(Place);
void brace_reads_nothing(Place);                     // - p reads p places before and behind
void operands_have_different_dtypes(Place);          // cast one with .to(dtype)
void reduction_wants_a_floating_point_dtype(Place);  // cast first: x.to(ein::DType::f32)
void reduction_is_unknown(Place);                    // sum mean max min ...: reduction.hpp has all

constexpr Place place_of(const grammar::Mistake& mistake, std::string_view text) {
  const std::size_t begin = mistake.span.begin < text.size() ? mistake.span.begin : text.size();
  return text.substr(begin, mistake.span.end - mistake.span.begin);
}

/// The function named after the mistake. Who finds the mistake calls it, not this function: each
/// call between lengthens what the compiler says.
constexpr auto function_of(const grammar::Mistake& mistake) {
  constexpr void (*functions[])(Place) = {
#define EIN_FUNCTION(name) name,
      EIN_FOR_EACH_COMPLAINT(EIN_FUNCTION)
#undef EIN_FUNCTION
  };
  return functions[static_cast<std::size_t>(mistake.complaint) - 1];
}

}  // namespace pattern_error
}  // namespace ein
