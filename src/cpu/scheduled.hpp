// A schedule as a kernel of this machine.
#pragma once

#include <memory>

#include "cpu/kernel.hpp"
#include "schedule/schedule.hpp"

namespace ein::host {

/// None where the code for a part's rows cannot be made.
std::unique_ptr<Kernel> make_kernel(const Schedule& schedule);

}  // namespace ein::host
