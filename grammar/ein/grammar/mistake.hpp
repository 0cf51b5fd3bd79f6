// Mistake: what is wrong with a pattern, as data that both compile time and run time can hold.
#pragma once

#include <cstdint>

#include <ein/grammar/pattern.hpp>

namespace ein::grammar {

/// Every way in which a pattern can be wrong whatever the shapes are. Each has words for people in
/// ein/detail/pattern_message.hpp, and a function of its name that a compiler's message shows in
/// ein/pattern_error.hpp.
#define EIN_FOR_EACH_COMPLAINT(X)                \
  /* The text */                                 \
  X(pattern_is_too_long)                         \
  X(unexpected_character)                        \
  X(text_is_not_utf8)                            \
  X(axis_name_begins_with_a_digit)               \
  X(axis_name_begins_or_ends_with_underscore)    \
  X(ellipsis_is_not_three_dots)                  \
  X(words_touch)                                 \
  X(number_is_zero)                              \
  X(number_is_too_large)                         \
  X(parenthesis_is_not_closed)                   \
  X(parenthesis_closes_nothing)                  \
  X(groups_are_nested_too_deeply)                \
  X(bracket_is_not_closed)                       \
  X(bracket_closes_nothing)                      \
  X(brackets_are_empty)                          \
  X(brackets_are_nested)                         \
  X(group_is_inside_brackets)                    \
  X(sum_is_outside_parentheses)                  \
  X(piece_is_missing)                            \
  X(piece_is_several_axes)                       \
  X(brace_is_not_closed)                         \
  X(brace_closes_nothing)                        \
  X(brace_is_empty)                              \
  X(brace_is_inside_brackets)                    \
  X(index_is_malformed)                          \
  X(coefficient_is_no_number)                    \
  X(arrow_is_malformed)                          \
  X(arrow_is_repeated)                           \
  X(mesh_axis_is_missing)                        \
  X(placed_axis_is_missing)                      \
  X(only_a_named_axis_is_placed)                 \
  X(group_is_placed)                             \
  X(axis_size_is_no_number)                      \
  X(only_a_named_axis_has_a_size)                \
  /* The form that an operation wants */         \
  X(arrow_is_missing)                            \
  X(arrow_is_not_wanted)                         \
  X(comma_after_the_arrow)                       \
  X(call_has_one_result)                         \
  X(number_of_operands_differs)                  \
  X(unnamed_axis_is_not_allowed)                 \
  X(packed_axes_are_not_allowed)                 \
  X(packed_axes_are_missing)                     \
  X(packed_axes_are_repeated)                    \
  X(many_axes_are_not_allowed)                   \
  X(group_is_not_allowed)                        \
  X(number_is_not_allowed)                       \
  X(brace_is_not_allowed)                        \
  X(brace_is_inside_a_group)                     \
  X(sum_is_not_allowed)                          \
  X(piece_is_no_axis)                            \
  X(brackets_are_not_allowed)                    \
  X(brackets_are_missing)                        \
  X(one_axis_in_brackets_is_wanted)              \
  X(rows_and_columns_in_brackets_are_wanted)     \
  X(rows_in_brackets_are_wanted)                 \
  X(columns_in_brackets_are_wanted)              \
  X(two_axes_in_brackets_are_wanted)             \
  X(brackets_are_inside_a_group)                 \
  /* The axes */                                 \
  X(ellipsis_is_repeated)                        \
  X(ellipsis_is_inside_a_group_of_an_input)      \
  X(ellipsis_of_the_output_is_in_no_input)       \
  X(ellipsis_of_the_input_is_lost)               \
  X(axis_is_repeated)                            \
  X(name_is_of_one_axis_and_of_many)             \
  X(axis_of_the_output_is_in_no_input)           \
  X(axis_names_are_glued)                        \
  X(axis_of_the_input_is_lost)                   \
  X(axis_is_summed_alone)                        \
  X(anonymous_axis_of_the_input_is_lost)         \
  X(anonymous_axis_of_the_output_is_in_no_input) \
  X(piece_comes_from_nowhere)                    \
  X(piece_goes_nowhere)                          \
  X(operand_goes_nowhere)                        \
  X(sums_have_too_many_cases)                    \
  X(axis_in_brackets_is_elsewhere)               \
  X(axes_are_in_another_order)                   \
  X(mesh_axis_is_repeated)                       \
  X(inner_axis_of_a_group_is_placed)             \
  X(piece_is_placed)                             \
  X(axis_is_placed_differently)                  \
  /* The axis sizes given beside the pattern */  \
  X(number_is_missing)                           \
  X(number_is_an_axis)                           \
  X(number_is_not_of_the_pattern)                \
  X(number_is_given_twice)                       \
  X(axis_size_is_not_of_the_pattern)             \
  X(axis_size_is_given_twice)                    \
  X(axis_size_is_missing)                        \
  X(group_has_more_than_one_unknown_size)        \
  X(sum_has_more_than_one_unknown_size)          \
  X(brace_has_more_than_one_unknown_size)        \
  /* The types of the operands */                \
  X(type_is_malformed)                           \
  X(operand_has_another_rank_than_the_pattern)   \
  X(axis_has_two_sizes)                          \
  X(axis_has_two_types)                          \
  X(axis_is_not_of_size_one)                     \
  X(group_has_another_size_than_its_axes)        \
  X(group_cannot_be_split_evenly)                \
  X(sum_has_another_size_than_its_pieces)        \
  X(brace_reads_nothing)                         \
  X(operands_have_different_dtypes)              \
  X(reduction_wants_a_floating_point_dtype)

enum class Complaint : std::uint8_t {
  none,
#define EIN_ENUMERATOR(name) name,
  EIN_FOR_EACH_COMPLAINT(EIN_ENUMERATOR)
#undef EIN_ENUMERATOR
};

/// A complaint and where it applies. `span` is the place at fault, `other` a second one (the first
/// occurrence of a repeated axis, say) or empty. `argument` is the index of an axis size argument,
/// or a count, where the complaint is about one.
struct Mistake {
  Complaint complaint = Complaint::none;
  SourceSpan span;
  SourceSpan other;
  std::int64_t argument = 0;

  constexpr explicit operator bool() const { return complaint != Complaint::none; }
};

}  // namespace ein::grammar
