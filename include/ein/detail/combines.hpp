// How elements are combined, a row each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <ein/scalar_expr.hpp>

namespace ein {

/// EIN_COMBINE(name, operation, of_taken, nothing, asks, selects):
/// - operation: of two elements
/// - of_taken: the combination of what is taken of elements, 1 where they differ from zero and else
///   0, if it `asks` that of each; else itself
/// - nothing: what no elements are
/// - selects: the result is one of those that are combined, or NaN
#define EIN_FOR_EACH_COMBINE(EIN_COMBINE)             \
  EIN_COMBINE(sum, add, sum, zero, false, false)      \
  EIN_COMBINE(prod, mul, prod, one, false, false)     \
  EIN_COMBINE(max, max, max, lowest, false, true)     \
  EIN_COMBINE(min, min, min, highest, false, true)    \
  EIN_COMBINE(any, logical_or, max, zero, true, true) \
  EIN_COMBINE(all, logical_and, min, one, true, true)

/// How `reduce` combines elements. `any` and `all` ask whether elements differ from zero.
#define EIN_ENUMERATOR(name, ...) name,
enum class Combine : std::uint8_t { EIN_FOR_EACH_COMBINE(EIN_ENUMERATOR) };
#undef EIN_ENUMERATOR

struct CombineInfo {
  enum Nothing : std::uint8_t { zero, one, lowest, highest };
  std::string_view name;
  ScalarOp operation;
  Combine of_taken;
  Nothing nothing;
  bool asks, selects;
};

constexpr CombineInfo info(Combine combine) {
#define EIN_ROW(name, operation, of_taken, nothing, asks, selects) \
  {#name, ScalarOp::operation, Combine::of_taken, CombineInfo::nothing, asks, selects},
  constexpr CombineInfo table[] = {EIN_FOR_EACH_COMBINE(EIN_ROW)};
#undef EIN_ROW
  return table[static_cast<std::size_t>(combine)];
}
constexpr std::string_view name(Combine combine) { return info(combine).name; }

}  // namespace ein
