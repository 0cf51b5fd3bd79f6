// The reductions that `reduce` knows.
#pragma once

#include <ein/compiler.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace ein {

/// `var` and `std` are those of the population (division by n, as NumPy's default), `sample_var`
/// and `sample_std` estimates from a sample (division by n - 1; of one element NaN); of complex
/// numbers they are real: the mean of |x - mean|², and its root. `norm` is the root of the sum of
/// squares, whose slope at 0 is 0. `any` and `all` ask whether elements differ from zero and answer
/// 0 or 1 in the input's dtype. The ones that begin with `nan` skip NaN. Over no elements: sum and
/// norm are 0, prod 1, any 0, all 1, mean, var, std, sample_var and sample_std NaN, logsumexp -inf;
/// max and min are an error. So are those that skip NaN where all elements are NaN, but that nanmax
/// and nanmin are NaN.
///
/// Sums are of f32, or of f64 where x is, and overflow where they exceed its largest number M,
/// 3.4e38 or 1.8e308. Of n elements `mean` is right for |x| <= M / n; `var`, `std` and the like
/// also want |x - mean| <= √(M / n): 1.8e19 / √n in f32, 1.3e154 / √n in f64. Beyond, they may be
/// infinite or NaN. Deviations below 1.1e-19 (f64: 1.5e-154) lose digits, as their squares are
/// subnormal. `norm` is right wherever it is a number of its dtype.
enum class Reduction : std::uint8_t {
  sum,
  mean,
  max,
  min,
  prod,
  any,
  all,
  logsumexp,
  var,
  std,
  sample_var,
  sample_std,
  norm,
  nansum,
  nanmean,
  nanmax,
  nanmin,
  nanprod,
  nanvar,
  nanstd
};

namespace detail {
/// In the order of the enumeration.
inline constexpr std::string_view reduction_names[] = {
    "sum",       "mean",   "max",    "min",        "prod",       "any",   "all",
    "logsumexp", "var",    "std",    "sample_var", "sample_std", "norm",  "nansum",
    "nanmean",   "nanmax", "nanmin", "nanprod",    "nanvar",     "nanstd"};
}  // namespace detail

constexpr std::string_view name(Reduction reduction) {
  return detail::reduction_names[static_cast<std::size_t>(reduction)];
}
/// Whether it is of squares of what differs from a mean.
constexpr bool is_variance(Reduction reduction) {
  return reduction == Reduction::var || reduction == Reduction::std ||
         reduction == Reduction::sample_var || reduction == Reduction::sample_std;
}
constexpr std::optional<Reduction> parse_reduction(std::string_view name) {
  for (std::size_t i = 0; i < std::size(detail::reduction_names); ++i) {
    if (detail::reduction_names[i] == name) return static_cast<Reduction>(i);
  }
  return std::nullopt;
}
/// The reduction of that name; an Error of kind `reduction` that lists them when there is none.
Reduction reduction_named(std::string_view name);

/// Whether the reduction is defined for floating-point dtypes only.
constexpr bool wants_floating(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::max:
    case Reduction::min:
    case Reduction::prod:
    case Reduction::any:
    case Reduction::all:
      return false;
    default:
      return true;
  }
}

}  // namespace ein
