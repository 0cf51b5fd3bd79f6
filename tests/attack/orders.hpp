// Gradients of the first three orders of a random program, beside jets (support/jet.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "program.hpp"

namespace ein::attack {

struct OrdersVerdict {
  std::string wrong;  // the first of them; empty if nothing is
  std::int64_t elements = 0;
};
/// Of each output through which gradients flow, those of all arguments of f64.
OrdersVerdict check_orders(const Program& program);

}  // namespace ein::attack
