// In which range the steps of an expression of integers lie.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <ein/scalar_expr.hpp>

namespace ein {

/// Whether an operation gives 0 or 1.
bool is_truth(ScalarOp op);

/// Both ends belong to it.
struct IntegerRange {
  std::int64_t low, high;
};

/// In which range the value of an operation lies, given those of its arguments, whose ends are less
/// than 2^31 in magnitude or -2^31; none where that is not known, as for leaves.
std::optional<IntegerRange> range_of(ScalarOp op, std::span<const IntegerRange> args);

}  // namespace ein
