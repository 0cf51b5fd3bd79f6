// The header of a .npy file: a Python dictionary literal.
#pragma once

#include <string>
#include <string_view>

#include <ein/tensor.hpp>

namespace ein::io {

struct NpyHeader {
  DType dtype = DType::f32;
  bool swapped = false;  // the file has the other byte order than this machine
  bool fortran_order = false;
  Shape shape;
};

/// Whether NumPy has the dtype; bfloat16 and the 8-bit floats it lacks.
bool has_npy_type(DType dtype);

/// NumPy's own limit since 2.0.
inline constexpr std::size_t npy_max_rank = 64;

/// `text` is what follows the header's length, and may be any bytes: a Python dictionary, whose
/// dtype is anything that numpy.dtype() takes for one of ours. Two things that Python has are left
/// out, as no writer has them: escapes in strings, and strings in parts. What is no such header
/// makes an Error of kind `file`, which names `caller` and `path`.
NpyHeader parse_npy_header(std::string_view text, const std::string& caller,
                           const std::string& path);

/// A whole version 1.0 prefix and header for a row-major array in this machine's byte order, as
/// NumPy writes it. Preconditions: NumPy has the dtype, and shape.rank() ≤ npy_max_rank.
std::string write_npy_header(DType dtype, const Shape& shape);

}  // namespace ein::io
