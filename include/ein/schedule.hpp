// Schedules: the learning rate as a function of the step, counted from 0.
//
//     const optim::Linear schedule{.learning_rate = 1e-3, .warmup_steps = 100, .end = 2000};
//     optimizer.set_learning_rate(schedule(step));
//
// During the first warmup_steps the rate is learning_rate · (step + 1) / (warmup_steps + 1), as
// nanoGPT has it.
#pragma once

#include <ein/compiler.hpp>

#include <cstdint>

namespace ein::optim {

struct Constant {
  double learning_rate = 1e-3;
  std::int64_t warmup_steps = 0;
  double operator()(std::int64_t step) const;
};

/// After the warm-up, a straight line to min_learning_rate at step `end`, which then stays.
struct Linear {
  double learning_rate = 1e-3;
  double min_learning_rate = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t end = 0;
  double operator()(std::int64_t step) const;
};

/// After the warm-up, half a period of a cosine (Loshchilov, Hutter 2017) down to min_learning_rate
/// at step `end`, which then stays.
struct CosineWithWarmup {
  double learning_rate = 1e-3;
  double min_learning_rate = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t end = 0;
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
  double operator()(std::int64_t step) const;
};

}  // namespace ein::optim
