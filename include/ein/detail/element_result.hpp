// The dtype of what an operation makes of elements.
#pragma once

#include <optional>
#include <type_traits>

#include <ein/dtype.hpp>

namespace ein::detail {

/// Of elements of one dtype: the same; the same, but f32 of integers; bool; or the same of integers
/// and bool, floats being an Error.
enum class ElementResult { same, floating, boolean, bits };

constexpr DType element_result(ElementResult result, DType dtype) {
  if (result == ElementResult::boolean) return DType::boolean;
  return result == ElementResult::floating && is_integral(dtype) ? DType::f32 : dtype;
}

/// Beside a number of C++ type N; none where that depends on the number.
template <class N>
constexpr std::optional<DType> element_result_beside(ElementResult result, DType dtype) {
  if (result == ElementResult::boolean || !is_integral(dtype)) return element_result(result, dtype);
  if (std::is_floating_point_v<N> || result == ElementResult::floating) return DType::f32;
  if (std::is_unsigned_v<N> && sizeof(N) == 8) return std::nullopt;
  return dtype == DType::boolean ? DType::i64 : dtype;
}

}  // namespace ein::detail
