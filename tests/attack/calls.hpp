// What rows of the table have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "program.hpp"

namespace ein::attack {

using Args = std::span<const Tensor>;

constexpr std::int64_t most_points = 40000;

/// Calls f(arguments...) with what follows the step's pattern.
template <class F, class... Sizes>
Tensor with_sizes(const Step& step, const F& f, const Sizes&... so_far) {
  if constexpr (sizeof...(Sizes) < 5) {
    if (sizeof...(Sizes) < step.sizes.size()) {
      const auto& [name, size] = step.sizes[sizeof...(Sizes)];
      return with_sizes(step, f, so_far..., AxisSize{name, size});
    }
  }
  return step.as ? f(so_far..., as(*step.as)) : f(so_far...);
}

inline bool take(Step& step, std::initializer_list<int> args) {
  step.args = args;
  return std::all_of(args.begin(), args.end(), [](int v) { return v >= 0; });
}

inline Tensor run_einsum(const Step& s, Args x) {
  return with_sizes(s,
                    [&](const auto&... sizes) { return einsum(x, runtime(s.pattern), sizes...); });
}
inline Tensor run_rearrange(const Step& s, Args x) {
  return with_sizes(
      s, [&](const auto&... sizes) { return rearrange(x[0], runtime(s.pattern), sizes...); });
}
template <Reduction R>
Tensor run_reduce(const Step& s, Args x) {
  return with_sizes(
      s, [&](const auto&... sizes) { return reduce(x[0], runtime(s.pattern), R, sizes...); });
}

/// Rows whose patterns have sums of axes.
void add_sums(std::vector<Operation>& table);
/// Rows whose patterns have braces.
void add_windows(std::vector<Operation>& table);

}  // namespace ein::attack
