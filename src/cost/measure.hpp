// What `measured_cpu` returns, measured by code that is compiled as the kernels are.
#pragma once

#include <ein/hardware.hpp>

namespace ein::host {

/// Wants require_processor() before it.
Hardware measured_cpu();

}  // namespace ein::host
