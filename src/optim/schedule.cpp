#include <ein/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "graph/domain.hpp"

namespace ein::optim {
namespace {

/// The rate of a step before `steps`.
double warming(double learning_rate, std::int64_t step, std::int64_t steps, WarmUp warm_up) {
  const double before = warm_up == WarmUp::above_zero ? 1 : 0;
  const double made = static_cast<double>(std::max<std::int64_t>(step, 0)) + before;
  return learning_rate * made / (static_cast<double>(steps) + before);
}

/// `remaining(progress)`, from 1 to 0, of the way from `low` to `high` for steps from `begin` to
/// `end`.
template <class Remaining>
double decay(double high, double low, std::int64_t step, std::int64_t begin, std::int64_t end,
             Remaining remaining) {
  if (step >= end) return low;
  if (step < begin) return high;
  const double progress = static_cast<double>(step - begin) / static_cast<double>(end - begin);
  return low + remaining(progress) * (high - low);
}

double line(double progress) { return 1 - progress; }

/// The options that schedules share.
void require_rates(const char* schedule, double learning_rate, std::int64_t warmup_steps,
                   double min_learning_rate = 0, std::int64_t end = 0) {
  require_in(not_negative, schedule, "learning_rate", learning_rate);
  require_in(not_negative, schedule, "min_learning_rate", min_learning_rate);
  require_at_least(0, schedule, "warmup_steps", warmup_steps);
  require_at_least(0, schedule, "end", end);
}

}  // namespace

double Constant::operator()(std::int64_t step) const {
  require_rates("Constant", learning_rate, warmup_steps);
  return step < warmup_steps ? warming(learning_rate, step, warmup_steps, warm_up) : learning_rate;
}

double Linear::operator()(std::int64_t step) const {
  require_rates("Linear", learning_rate, warmup_steps, min_learning_rate, end);
  if (step < warmup_steps) return warming(learning_rate, step, warmup_steps, warm_up);
  return decay(learning_rate, min_learning_rate, step, warmup_steps, end, line);
}

double CosineWithWarmup::operator()(std::int64_t step) const {
  require_rates("CosineWithWarmup", learning_rate, warmup_steps, min_learning_rate, end);
  if (step < warmup_steps) return warming(learning_rate, step, warmup_steps, warm_up);
  return decay(learning_rate, min_learning_rate, step, warmup_steps, end,
               [](double progress) { return 0.5 * (1 + std::cos(std::numbers::pi * progress)); });
}

double WSD::operator()(std::int64_t step) const {
  require_rates("WSD", learning_rate, warmup_steps, min_learning_rate, end);
  require_at_least(0, "WSD", "decay_begin", decay_begin);
  if (step < warmup_steps) return warming(learning_rate, step, warmup_steps, warm_up);
  return decay(learning_rate, min_learning_rate, step, decay_begin, end, line);
}

}  // namespace ein::optim
