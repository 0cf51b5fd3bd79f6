// The reductions that `reduce` knows.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ein {

/// `var` and `std` are those of the population (division by n, as NumPy's default). `any` and `all` ask
/// whether elements differ from zero and answer 0 or 1 in the input's dtype. Over no elements: sum is 0,
/// prod 1, any 0, all 1, mean, var and std NaN, logsumexp -inf; max and min are an error.
enum class Reduction : std::uint8_t { sum, mean, max, min, prod, any, all, logsumexp, var, std };

std::string_view name(Reduction reduction);
std::optional<Reduction> parse_reduction(std::string_view name);

}  // namespace ein
