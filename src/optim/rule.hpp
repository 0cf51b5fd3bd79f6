// What the optimizers' rules share.
#pragma once

#include <ein/optim.hpp>

namespace ein::optim {

/// Errors of kind `value` that name the optimizer and the option.
void require_not_negative(const char* optimizer, const char* option, double value);
void require_below_one(const char* optimizer, const char* option, double value);

}  // namespace ein::optim
