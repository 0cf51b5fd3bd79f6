// Where rows have the element that is looked for.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ein/dtype.hpp>

namespace ein::host {

/// Rows of elements that lie side by side, and for each row what is looked for. Steps from row to
/// row are in elements.
struct SearchedRows {
  const std::byte *elements, *values;
  std::int64_t row_step, value_step;
  std::int64_t rows, length;
};
/// Whether first_equal() takes elements of `dtype`: not floats of 8 bits, nor complex numbers.
bool finds_first_equal(DType dtype);
/// The place of the first element of each row that equals its value or is NaN; the length if none.
void first_equal(const SearchedRows& rows, DType dtype, std::int64_t* places);

}  // namespace ein::host
