// Schedules: the learning rate as a function of the step, counted from 0.
//
//     const optim::Linear schedule{.learning_rate = 1e-3, .warmup_steps = 100, .end = 2000};
//     optimizer.set_learning_rate(schedule(step));
//
// During the first warmup_steps the rate grows along a straight line, as WarmUp says.
#pragma once

#include <ein/compiler.hpp>

#include <cstdint>

namespace ein::optim {

/// Where the line of a warm-up of w steps begins; at step w it has learning_rate, or would have it.
enum class WarmUp : std::uint8_t {
  above_zero,  ///< learning_rate · (step + 1) / (w + 1), as nanoGPT has it: the first step counts
  at_zero      ///< learning_rate · step / w, as CS336 has it
};

struct Constant {
  double learning_rate = 1e-3;
  std::int64_t warmup_steps = 0;
  WarmUp warm_up = WarmUp::above_zero;
  double operator()(std::int64_t step) const;
};

/// After the warm-up, a straight line to min_learning_rate at step `end`, which then stays.
struct Linear {
  double learning_rate = 1e-3;
  double min_learning_rate = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t end = 0;
  WarmUp warm_up = WarmUp::above_zero;
  double operator()(std::int64_t step) const;
};

/// After the warm-up, half a period of a cosine (Loshchilov, Hutter 2017) down to min_learning_rate
/// at step `end`, which then stays.
struct CosineWithWarmup {
  double learning_rate = 1e-3;
  double min_learning_rate = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t end = 0;
  WarmUp warm_up = WarmUp::above_zero;
  double operator()(std::int64_t step) const;
};

/// Warm-up, stable, decay (Hu et al. 2024): learning_rate until step decay_begin, then a straight
/// line to min_learning_rate at step `end`, which then stays.
struct WSD {
  double learning_rate = 1e-3;
  double min_learning_rate = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t decay_begin = 0;
  std::int64_t end = 0;
  WarmUp warm_up = WarmUp::above_zero;
  double operator()(std::int64_t step) const;
};

}  // namespace ein::optim
