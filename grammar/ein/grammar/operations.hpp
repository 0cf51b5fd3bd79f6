// The operations that have patterns, a row each. Enumerators, names, what they want of a pattern,
// how their graphs are built, dtypes of their results and the command's calls follow from it.
#pragma once

#include <ein/compiler.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ein {

namespace grammar {

/// What an operation wants of every pattern.
struct Form {
  enum Arrow : std::uint8_t { no_arrow, arrow, maybe_arrow };
  enum Brackets : std::uint8_t {
    no_brackets,
    axes_of_the_input,
    axis_of_the_input,
    two_axes_of_the_input,
    axis_of_the_output,
    matrix_of_the_input,  // its rows and columns; of a second operand the rows, of the output the
                          // columns
  };
  std::size_t operands = 1;  // any_number: as many as the call has
  Arrow has_arrow = no_arrow;
  bool has_groups = false;  // and takes axis sizes
  Brackets brackets = no_brackets;
  bool has_braces = false;  // a dimension may be a function of indices
  bool has_sums = false;    // axes may lie side by side in a dimension
  bool joins = false;       // operands and results are parts of one another: there may be several

  static constexpr std::size_t any_number = SIZE_MAX;
  /// Whether each element of the result is made of elements of all operands.
  constexpr bool multiplies() const { return operands == any_number && !joins; }
  constexpr bool marks_one_axis() const {
    return brackets == axis_of_the_input || brackets == axis_of_the_output;
  }
  constexpr bool marks_two_axes() const { return brackets == two_axes_of_the_input; }
};

/// What a result has of the axes of its first operand, where no arrow says it.
struct MarkedAxes {
  enum Fate : std::uint8_t {
    kept,
    dropped,
    resized,    // there are more or fewer positions of the same kind
    unnamed,    // another axis is in its place
    doubled,    // two of those
    exchanged,  // the other axis in brackets is in its place
    lesser,     // another one is, of the lesser size of both in brackets
  };
  Fate first = kept, others = kept;  // of those in brackets
  Fate rest = kept;
};

/// What a call says beside its pattern and operands: which of it an operation reads.
struct CallSays {
  static constexpr unsigned nothing = 0;
  static constexpr unsigned sizes = 1;     // of axes
  static constexpr unsigned by = 2;        // which reduction
  static constexpr unsigned dtype = 4;     // of the result
  static constexpr unsigned pieces = 8;    // shapes that were packed
  static constexpr unsigned eps = 16;      // what is added to a variance
  static constexpr unsigned count = 32;    // how many
  static constexpr unsigned numbers = 64;  // shifts, margins, which diagonal, how many bins
  static constexpr unsigned reals = 128;   // quantiles, ends of a range
  static constexpr unsigned order = 256;   // the greatest first
  static constexpr unsigned lists = 512;   // tensors that are stacked
};

}  // namespace grammar

/// EIN_OPERATION(name, builder, combine, form, reads, what else is known of it).
/// - builder, combine: the function of src/graph/named.hpp that builds the graph, for this
///   combination; no_builder where brackets mark no axis.
/// - what else: fields of OperationInfo.
#define EIN_FOR_EACH_OPERATION(EIN_OPERATION)                                                    \
  EIN_OPERATION(einsum, no_builder, sum, summed, sizes | dtype, .result = sums_if_reduced)       \
  EIN_OPERATION(map, no_builder, sum, at_any, sizes | dtype, .stands = with_a_function)          \
  EIN_OPERATION(map_reduce, no_builder, sum, at_any, sizes | by | dtype, .result = of_reduction, \
                .shown = "map", .stands = with_a_function)                                       \
  EIN_OPERATION(reduce, no_builder, sum, reduced, sizes | by | dtype | lists,                    \
                .result = of_reduction)                                                          \
  EIN_OPERATION(rearrange, no_builder, sum, joined, sizes | dtype | lists)                       \
  EIN_OPERATION(repeat, no_builder, sum, of_one, sizes | dtype | lists)                          \
  EIN_OPERATION(pack, no_builder, sum, of_side, nothing)                                         \
  EIN_OPERATION(unpack, no_builder, sum, of_side, pieces)                                        \
  EIN_OPERATION(parse_shape, no_builder, sum, of_side, nothing)                                  \
  /* with axes in brackets */                                                                    \
  EIN_OPERATION(softmax, build_softmax, sum, of_axes, sizes, .accumulates = true)                \
  EIN_OPERATION(log_softmax, build_log_softmax, sum, of_axes, sizes, .accumulates = true)        \
  EIN_OPERATION(layer_norm, build_layer_norm, sum, of_axes, sizes | eps, .weights = 2,           \
                .accumulates = true)                                                             \
  EIN_OPERATION(rms_norm, build_rms_norm, sum, of_axes, sizes | eps, .weights = 1,               \
                .accumulates = true)                                                             \
  EIN_OPERATION(argmax, build_argmax, max, of_axes, sizes, .axes = {of_none})                    \
  EIN_OPERATION(argmin, build_argmax, min, of_axes, sizes, .axes = {of_none})                    \
  EIN_OPERATION(cumsum, build_scan, sum, of_axis, sizes | dtype, .result = sums,                 \
                .accumulates = true)                                                             \
  EIN_OPERATION(cumprod, build_scan, prod, of_axis, sizes | dtype, .result = sums,               \
                .accumulates = true)                                                             \
  EIN_OPERATION(cummax, build_scan, max, of_axis, sizes)                                         \
  EIN_OPERATION(cummin, build_scan, min, of_axis, sizes)                                         \
  EIN_OPERATION(logcumsumexp, build_logcumsumexp, sum, of_axis, sizes, .accumulates = true)      \
  EIN_OPERATION(sort, build_sort, sum, of_axis, sizes | order)                                   \
  EIN_OPERATION(top_k, build_top_k, sum, of_axis, sizes | count, .axes = {of_resized})           \
  EIN_OPERATION(gather, build_gather, sum, gathered, sizes, .positions = 1)                      \
  EIN_OPERATION(scatter_add, build_scatter, sum, scattered, sizes | dtype, .positions = 1,       \
                .result = sums)                                                                  \
  EIN_OPERATION(scatter_prod, build_scatter, prod, scattered, sizes | dtype, .positions = 1,     \
                .result = sums)                                                                  \
  EIN_OPERATION(scatter_max, build_scatter, max, scattered, sizes, .positions = 1)               \
  EIN_OPERATION(scatter_min, build_scatter, min, scattered, sizes, .positions = 1)               \
  EIN_OPERATION(one_hot, build_one_hot, sum, marked, sizes | dtype, .positions = 0)              \
  EIN_OPERATION(cross_entropy, build_cross_entropy, sum, picked, sizes, .weights = 1,            \
                .positions = 1, .accumulates = true, .axes = {of_nothing})                       \
  EIN_OPERATION(flip, build_flip, sum, of_axes, sizes)                                           \
  EIN_OPERATION(roll, build_roll, sum, of_axes, sizes | numbers)                                 \
  EIN_OPERATION(pad, build_pad, sum, of_axes, sizes | numbers, .axes = {of_resized})             \
  EIN_OPERATION(tril, build_triangle, sum, of_two_axes, sizes | numbers)                         \
  EIN_OPERATION(triu, build_triangle, sum, of_two_axes, sizes | numbers)                         \
  EIN_OPERATION(diagonal, build_diagonal, sum, of_two_axes, sizes | numbers,                     \
                .axes = {of_diagonal})                                                           \
  EIN_OPERATION(from_diagonal, build_from_diagonal, sum, of_axis, sizes | numbers,               \
                .axes = {of_two})                                                                \
  EIN_OPERATION(median, build_quantile, sum, of_axis, sizes, .axes = {of_none})                  \
  EIN_OPERATION(quantile, build_quantile, sum, of_axis, sizes | reals,                           \
                .axes = {of_none, of_another})                                                   \
  EIN_OPERATION(multinomial, build_multinomial, sum, of_axis, sizes, .weights = 1,               \
                .axes = {of_another})                                                            \
  EIN_OPERATION(searchsorted, build_searchsorted, sum, searched, sizes)                          \
  EIN_OPERATION(histogram, build_histogram, sum, of_axis, sizes | numbers | reals,               \
                .axes = {of_another})                                                            \
  /* with a matrix in brackets */                                                                \
  EIN_OPERATION(inverse, build_matrix, sum, of_matrix, sizes, .axes = {of_exchanged})            \
  EIN_OPERATION(det, build_matrix, sum, of_matrix, sizes, .axes = {of_none})                     \
  EIN_OPERATION(cholesky, build_matrix, sum, of_matrix, sizes)                                   \
  EIN_OPERATION(solve, build_matrix, sum, of_matrix_and_more, sizes)                             \
  EIN_OPERATION(lstsq, build_matrix, sum, of_matrix_and_more, sizes)                             \
  EIN_OPERATION(qr, build_matrix, sum, of_matrix, sizes, .axes = {of_rows, of_columns})          \
  EIN_OPERATION(svd, build_matrix, sum, of_matrix, sizes,                                        \
                .axes = {of_rows, of_rank_alone, of_columns})                                    \
  EIN_OPERATION(eigh, build_matrix, sum, of_matrix, sizes, .axes = {of_columns_alone})           \
  /* of a mesh of processes: where a tensor lies; nothing is computed */                         \
  EIN_OPERATION(place, no_builder, sum, of_side, sizes, .stands = on_a_mesh)                     \
  EIN_OPERATION(reshard, no_builder, sum, moved, sizes, .stands = on_a_mesh)                     \
  /* what a model's layer makes of its input's axes */                                           \
  EIN_OPERATION(layer, no_builder, sum, of_one, nothing, .stands = in_a_type)

#define EIN_ENUMERATOR(name, ...) name,
enum class Operation : std::uint8_t { EIN_FOR_EACH_OPERATION(EIN_ENUMERATOR) };
#undef EIN_ENUMERATOR

/// What is known of an operation.
struct OperationInfo {
  /// Of which dtype its result is, where the call does not say it: that of its operand, that of
  /// sums (result_dtype.hpp), or that where the pattern drops an axis, or as its reduction says.
  enum Result : std::uint8_t { of_operand, sums, sums_if_reduced, of_reduction };
  /// Whether its pattern says what it computes; or a function beside it does; or it says where a
  /// tensor lies, or the axes of a layer, and nothing is computed.
  enum Stands : std::uint8_t { alone, with_a_function, on_a_mesh, in_a_type };

  std::string_view name;
  grammar::Form form;
  unsigned reads = 0;
  std::size_t weights = 0;  // operands that a call may have and its pattern does not name
  int positions = -1;       // the operand that holds positions; none
  Result result = of_operand;
  bool accumulates = false;  // adds or multiplies many elements, outside of a contraction
  std::string_view shown{};  // in messages, where that is not its name
  Stands stands = alone;
  /// What its results have of an operand's axes, each of them or each form of the call.
  std::array<grammar::MarkedAxes, 3> axes{};
};

namespace detail {
struct OperationTable : OperationInfo, grammar::CallSays {
  using Form = grammar::Form;
  static constexpr Form of_side{};
  static constexpr Form of_one{1, Form::arrow, true};
  static constexpr Form at_any{Form::any_number, Form::arrow, true, Form::no_brackets, true};
  static constexpr Form summed{Form::any_number, Form::arrow, true, Form::no_brackets, true, true};
  static constexpr Form reduced{1, Form::arrow, true, Form::no_brackets, true, true};
  static constexpr Form joined{Form::any_number, Form::arrow, true, Form::no_brackets, true, true,
                               /*joins=*/true};
  static constexpr Form moved{1, Form::arrow};
  static constexpr Form of_axes{1, Form::no_arrow, true, Form::axes_of_the_input};
  static constexpr Form of_axis{1, Form::no_arrow, true, Form::axis_of_the_input};
  static constexpr Form of_two_axes{1, Form::no_arrow, true, Form::two_axes_of_the_input};
  static constexpr Form of_matrix{1, Form::no_arrow, true, Form::matrix_of_the_input};
  static constexpr Form of_matrix_and_more{2, Form::arrow, true, Form::matrix_of_the_input};
  static constexpr Form gathered{2, Form::arrow, true, Form::axis_of_the_input};
  static constexpr Form searched{2, Form::arrow, true, Form::axis_of_the_input};
  static constexpr Form picked{2, Form::maybe_arrow, true, Form::axis_of_the_input};
  static constexpr Form marked{1, Form::arrow, true, Form::axis_of_the_output};
  static constexpr Form scattered{2, Form::arrow, true, Form::axis_of_the_output};

  using Axes = grammar::MarkedAxes;
  static constexpr Axes of_none{Axes::dropped, Axes::dropped};
  static constexpr Axes of_nothing{Axes::dropped, Axes::dropped, Axes::dropped};
  static constexpr Axes of_resized{Axes::resized, Axes::resized};
  static constexpr Axes of_another{Axes::unnamed, Axes::unnamed};
  static constexpr Axes of_two{Axes::doubled};
  static constexpr Axes of_diagonal{Axes::resized, Axes::dropped};
  static constexpr Axes of_exchanged{Axes::exchanged, Axes::exchanged};
  static constexpr Axes of_rows{Axes::kept, Axes::lesser};
  static constexpr Axes of_columns{Axes::lesser, Axes::kept};
  static constexpr Axes of_rank_alone{Axes::lesser, Axes::dropped};
  static constexpr Axes of_columns_alone{Axes::exchanged, Axes::dropped};

#define EIN_ROW(name_, builder, combine, form_, reads_, ...) \
  OperationInfo{.name = #name_, .form = form_, .reads = reads_ __VA_OPT__(, ) __VA_ARGS__},
  static constexpr auto rows() { return std::to_array({EIN_FOR_EACH_OPERATION(EIN_ROW)}); }
#undef EIN_ROW
};
inline constexpr auto operation_table = OperationTable::rows();
}  // namespace detail

inline constexpr int operation_count = static_cast<int>(detail::operation_table.size());

constexpr const OperationInfo& info(Operation op) {
  return detail::operation_table[static_cast<std::size_t>(op)];
}
constexpr std::string_view name(Operation op) {
  const OperationInfo& row = info(op);
  return row.shown.empty() ? row.name : row.shown;
}
/// Whether an operation says where a tensor lies, and computes nothing.
constexpr bool is_of_a_mesh(Operation op) { return info(op).stands == OperationInfo::on_a_mesh; }
/// Whether its pattern says what it computes.
constexpr bool stands_alone(Operation op) { return info(op).stands == OperationInfo::alone; }

}  // namespace ein
