// .npy files: NumPy's format for one array.
#pragma once

#include <string>

#include <ein/tensor.hpp>

namespace ein {

struct NpyOptions {
  /// Map the file instead of reading it: pages come from the disk when they are first touched. The
  /// tensor's storage is read-only and keeps the mapping alive, not the file's content: whoever
  /// writes to the file in place meanwhile (save_npy never does) changes the elements, and whoever
  /// truncates it makes an access fault, SIGBUS, which ends the process. So leave this false for
  /// files that strangers can write to. Big-endian, bool and unaligned elements are read all the
  /// same.
  bool mmap = false;
};

/// The array in a .npy file of version 1.0, 2.0 or 3.0 (numpy.lib.format, NEP 1), of either byte
/// order. NumPy's floats f8 f4 f2, its complex c16 c8, its integers i8 i4 i2 i1 u8 u4 u2 u1 and its
/// b1 are ours of as many bytes (dtypes.hpp): u8 becomes u64. Headers are read as numpy.load reads
/// them, whoever wrote them: `f4`, `float32`, `?` and whatever else numpy.dtype() takes for one of
/// these, with or without a newline at the end; what is behind the elements is left alone. Bool
/// bytes other than 0 and 1 are true. Column-major (`fortran_order`) arrays are strided views, not
/// copied. An Error of kind `file` when the file cannot be read, is no such file, holds another
/// dtype, or more than 64 dimensions; of kind `memory` when there is no more.
Tensor load_npy(const std::string& path, NpyOptions options = {});

/// Writes `x` row-major as a .npy file of version 1.0 with the permissions of the file it replaces.
/// Either all of it arrives at `path`, durably, or the file that was there stays whole: the bytes
/// go to a temporary file beside it, which is then renamed. Symbolic links are followed, also to a
/// file that does not exist yet, but not those of another user in a directory such as /tmp. An
/// Error of kind `file` when that fails, `dtype` for bf16 and the 8-bit floats, which NumPy lacks,
/// and `rank` above NumPy's 64 dimensions.
void save_npy(const std::string& path, const Tensor& x);

}  // namespace ein
