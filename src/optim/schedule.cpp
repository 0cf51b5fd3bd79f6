#include <ein/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ein::optim {
namespace {

double warm_up(double learning_rate, std::int64_t step, std::int64_t steps) {
  const double made = static_cast<double>(std::max<std::int64_t>(step, 0)) + 1;
  return learning_rate * made / (static_cast<double>(steps) + 1);
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

}  // namespace

double Constant::operator()(std::int64_t step) const {
  return step < warmup_steps ? warm_up(learning_rate, step, warmup_steps) : learning_rate;
}

double Linear::operator()(std::int64_t step) const {
  if (step < warmup_steps) return warm_up(learning_rate, step, warmup_steps);
  return decay(learning_rate, min_learning_rate, step, warmup_steps, end, line);
}

double CosineWithWarmup::operator()(std::int64_t step) const {
  if (step < warmup_steps) return warm_up(learning_rate, step, warmup_steps);
  return decay(learning_rate, min_learning_rate, step, warmup_steps, end,
               [](double progress) { return 0.5 * (1 + std::cos(std::numbers::pi * progress)); });
}

double WSD::operator()(std::int64_t step) const {
  if (step < warmup_steps) return warm_up(learning_rate, step, warmup_steps);
  return decay(learning_rate, min_learning_rate, step, decay_begin, end, line);
}

}  // namespace ein::optim
