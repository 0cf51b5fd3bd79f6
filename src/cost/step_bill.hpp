// The part of a step's bill that its loop nests say.
#pragma once

#include <ein/step_bill.hpp>
#include "nest/nest.hpp"

namespace ein {

/// Costs, activations and gradients.
StepBill step_bill(const Program& program);

}  // namespace ein
