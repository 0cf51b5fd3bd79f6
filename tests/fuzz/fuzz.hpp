// What the fuzz targets share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <ein/error.hpp>
#include <ein/tensor.hpp>

#include "support/memory_file.hpp"

namespace ein::fuzz {

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

/// Bit for bit.
inline bool same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.nbytes() == 0 || std::memcmp(x.raw_data(), y.raw_data(), x.nbytes()) == 0;
}

/// What f returns; nothing but an Error of this kind may come out of it, and then `otherwise` is
/// the result.
template <class F, class T>
T value_or_error(ErrorKind kind, T otherwise, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    require(error.kind() == kind, "an error of another kind");
    require(error.what()[0] != '\0', "an error without words");
    return otherwise;
  }
}

}  // namespace ein::fuzz
