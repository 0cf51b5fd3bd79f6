// The four types in which everything is computed.
#pragma once

#include <ein/dtype.hpp>

namespace ein {

/// The type in which elements of `dtype` are computed: f64, f32, i64, or u64 for u64, whose order,
/// quotients and values as floats i64 lacks; that of its parts for a complex one.
constexpr DType compute_type(DType dtype) {
  if (is_integral(dtype)) return dtype == DType::u64 ? dtype : DType::i64;
  return real_dtype(dtype) == DType::f64 ? DType::f64 : DType::f32;
}
/// Whether things are computed in `dtype`.
constexpr bool is_compute_type(DType dtype) { return compute_type(dtype) == dtype; }
/// Whether `compute` has every value of `dtype`, so that one that is read and written stays as it
/// is.
constexpr bool has_all_values(DType compute, DType dtype) {
  if (is_integral(compute)) return is_integral(dtype);
  const std::size_t bytes = size_of(real_dtype(dtype));
  const std::size_t exact = compute == DType::f64 ? 8 : 4;
  return is_integral(dtype) ? bytes < exact : bytes <= exact;
}
/// Calls `f` with a `std::type_identity` of the type to compute in.
template <class F>
constexpr decltype(auto) visit_compute_type(DType compute, F&& f) {
  if (compute == DType::f64) return f(std::type_identity<double>{});
  if (compute == DType::i64) return f(std::type_identity<std::int64_t>{});
  if (compute == DType::u64) return f(std::type_identity<std::uint64_t>{});
  return f(std::type_identity<float>{});
}
/// The type in which elements of `from` become elements of `to`, rounded once: integers on their
/// way to floats are f32 where it has them all, or where f32 is what they become (those of 8 bytes
/// that become 16 or 8 bits are f64 in between, see `convert`).
constexpr DType conversion_type(DType from, DType to) {
  if (!is_integral(from) || is_integral(to)) return compute_type(from);
  const bool is_for_f32 = to == DType::f32 || (to != DType::f64 && size_of(from) < 4);
  return is_for_f32 ? DType::f32 : DType::f64;
}
/// The type in which elements of dtypes `a` and `b`, both floating or both not, are computed
/// together.
constexpr DType common_compute_type(DType a, DType b) {
  if (is_complex(a) || is_complex(b)) return promote(a, b);
  return a == DType::f64 || a == DType::u64 ? a : compute_type(b);
}
/// The dtype of a combination of elements of `from` that is to become `to`: `to` itself, but where
/// one is floating-point and the other is not, the widest of the kind of `from`.
constexpr DType dtype_to_combine(DType from, DType to) {
  return is_floating(from) == is_floating(to) ? to : compute_type(from);
}

}  // namespace ein
