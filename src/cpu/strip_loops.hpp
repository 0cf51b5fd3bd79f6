// The loops over strips, which are compiled for each instruction set (level.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpu/strip.hpp"
#include "nest/combine.hpp"

namespace ein::host {

/// Each value of `from` as a row of `row` elements.
template <class C>
void spread(const C* from, std::size_t step, std::size_t rows, std::size_t row, C* out) {
  for (std::size_t r = 0; r < rows; ++r) std::fill_n(out + r * row, row, from[r * step]);
}

/// An argument of an operation over rows: a value for each element, or one that holds for a row.
template <class C>
struct RowArgument {
  const C* data;
  bool is_whole;
  std::size_t step;  // from row to row
};

/// An operation some of whose arguments have one value for each row; at least one has all. `spare`
/// has room for three strips.
template <class C>
void apply_by_rows(ScalarOp op, RowArgument<C> (&args)[3], int arity, C* out, std::size_t rows,
                   std::size_t row, C* spare);

/// An input that needs no evaluation is combined in longer strips: memory that is read without a
/// break past the end of a page comes twice as fast.
inline constexpr std::int64_t plain_strip_size = 4 * strip_size;

/// Strips of n <= plain_strip_size numbers, `step` apart, to one number each.
template <class C>
void combine_strips(Combine combine, const C* values, std::int64_t step, std::size_t n,
                    std::int64_t count, C* results);

}  // namespace ein::host
