#include "nest/integer_range.hpp"

#include <algorithm>
#include <bit>
#include <string_view>

#include "size/ask.hpp"

namespace ein {
namespace {

/// As many bits as the longer has, and a sign where one has.
IntegerRange any_bits(const IntegerRange& a, const IntegerRange& b) {
  const auto magnitude = [](std::int64_t x) { return static_cast<std::uint64_t>(x < 0 ? ~x : x); };
  std::uint64_t most = 0;
  for (std::int64_t end : {a.low, a.high, b.low, b.high}) most = std::max(most, magnitude(end));
  const auto ones = static_cast<std::int64_t>((std::uint64_t{1} << std::bit_width(most)) - 1);
  return {a.low < 0 || b.low < 0 ? -ones - 1 : 0, ones};
}

}  // namespace

bool is_truth(ScalarOp op) {
  constexpr auto is_boolean = [](std::string_view result) { return result == "boolean"; };
  switch (op) {
    case ScalarOp::logical_not:
      return true;
#define EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, \
                   cuda)                                                                      \
  case ScalarOp::name:                                                                        \
    return is_boolean(#result);
#include <ein/detail/binary_functions.hpp>
    default:
      return false;
  }
}

std::optional<IntegerRange> range_of(ScalarOp op, std::span<const IntegerRange> args) {
  using enum ScalarOp;
  if (is_truth(op)) return IntegerRange{0, 1};
  if (args.empty()) return std::nullopt;
  const IntegerRange &a = args[0], &b = args[args.size() > 1 ? 1 : 0], &c = args.back();
  switch (op) {
    case neg:
      return IntegerRange{-a.high, -a.low};
    case ScalarOp::abs:
      return IntegerRange{a.low > 0 ? a.low : std::max<std::int64_t>(0, -a.high),
                          std::max(-a.low, a.high)};
    case add:
      return IntegerRange{a.low + b.low, a.high + b.high};
    case sub:
      return IntegerRange{a.low - b.high, a.high - b.low};
    case mul: {
      const auto [low, high] =
          std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
      return IntegerRange{low, high};
    }
    case ScalarOp::min:
      return IntegerRange{std::min(a.low, b.low), std::min(a.high, b.high)};
    case ScalarOp::max:
      return IntegerRange{std::max(a.low, b.low), std::max(a.high, b.high)};
    case remainder:  // has the sign of the divisor, or is 0
      return IntegerRange{std::min<std::int64_t>(0, b.low + 1),
                          std::max<std::int64_t>(0, b.high - 1)};
    case bit_and:  // nothing is set that a number without a sign has not set
      if (a.low >= 0 || b.low >= 0)
        return IntegerRange{0, a.low < 0 ? b.high : b.low < 0 ? a.high : std::min(a.high, b.high)};
      return any_bits(a, b);
    case bit_or:
    case bit_xor:
      return any_bits(a, b);
    case shift_right:  // to 0 or -1 at the most
      return IntegerRange{a.low < 0 ? a.low : 0, a.high < 0 ? -1 : a.high};
    case where:
      return IntegerRange{std::min(b.low, c.low), std::max(b.high, c.high)};
    default:
      return std::nullopt;
  }
}

}  // namespace ein
