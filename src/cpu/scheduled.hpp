// A schedule as a kernel of this machine.
#pragma once

#include <memory>

#include "cpu/kernel.hpp"
#include "schedule/schedule.hpp"

namespace ein::host {

/// None where the code for a part's rows cannot be made.
std::unique_ptr<const KernelPlan> plan_kernel(Schedule schedule);
inline std::unique_ptr<Kernel> make_kernel(Schedule schedule) {
  const auto plan = plan_kernel(std::move(schedule));
  return plan ? plan->at_numbers() : nullptr;
}

}  // namespace ein::host
