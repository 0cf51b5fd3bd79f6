// A call with a pattern as the plan that it runs, for those who run it on memory that is no
// tensor's.
#pragma once

#include <memory>

#include <ein/named.hpp>
#include <ein/ops.hpp>
#include "runtime/plan.hpp"

namespace ein::engine {

/// What run_all and run_named find or make for these operands, outside of an Autocast.
std::shared_ptr<const Plan> plan_of_call(const detail::Call& call);
std::shared_ptr<const Plan> plan_of_call(const detail::NamedCall& call);

}  // namespace ein::engine
