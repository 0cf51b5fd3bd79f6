// Comparisons of sizes in rooms up to compile: what is asked makes a guard, and says so.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <ein/shape.hpp>
#include <ein/size.hpp>

namespace ein {

/// Whether two sizes are equal for the lengths at hand. Of formulas the answer is a guard: what is
/// compiled holds for lengths with the same answer alone. always_equal() asks nothing.
constexpr bool ask_equal(Size a, Size b) { return a == b; }
inline bool ask_equal(const Shape& a, const Shape& b) { return a == b; }
constexpr bool ask_equal(const std::pair<Size, Size>& a, const std::pair<Size, Size>& b) {
  return ask_equal(a.first, b.first) && ask_equal(a.second, b.second);
}
inline bool ask_equal(const std::vector<Size>& a, const std::vector<Size>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](Size x, Size y) { return ask_equal(x, y); });
}

// In files that include this, `==` and `!=` of sizes and shapes do not compile, so that none
// narrows by an oversight for which lengths a plan holds: beside those of Size and Shape these are
// ambiguous.
bool operator==(const Size& a, const Size& b) = delete;
bool operator==(const Size& a, detail::IntegerNumber auto b) = delete;
bool operator==(Shape a, Shape b) = delete;

}  // namespace ein
