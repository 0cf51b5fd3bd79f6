// The three types in which everything is computed.
#pragma once

#include <ein/dtype.hpp>

namespace ein {

/// The type in which elements of `dtype` are computed: f64, f32 or i64.
constexpr DType compute_type(DType dtype) {
  if (is_integral(dtype)) return DType::i64;
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}
/// The type in which elements of `from` become elements of `to`, rounded once.
constexpr DType conversion_type(DType from, DType to) {
  return is_integral(from) && is_floating(to) ? DType::f64 : compute_type(from);
}
/// The type in which elements of dtypes `a` and `b`, both floating or both not, are computed together.
constexpr DType common_compute_type(DType a, DType b) { return a == DType::f64 ? a : compute_type(b); }
/// The dtype of a combination of elements of `from` that is to become `to`: `to` itself, but where one is floating-point
/// and the other is not, the widest of the kind of `from`.
constexpr DType dtype_to_combine(DType from, DType to) {
  return is_floating(from) == is_floating(to) ? to : compute_type(from);
}

}  // namespace ein
