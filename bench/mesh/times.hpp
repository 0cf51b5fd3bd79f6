// The times of an all-reduce of f32, as both programs of bench/all_reduce.sh measure them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

/// Prints, for each size, the bytes and the median and least time in microseconds, in the process
/// that `prints`. `barrier()` and `all_reduce(from, to, count)` are what is measured.
template <class Barrier, class AllReduce>
void print_times(bool prints, const Barrier& barrier, const AllReduce& all_reduce) {
  using Clock = std::chrono::steady_clock;
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{64} << 10, std::size_t{1} << 20,
                                  std::size_t{8} << 20, std::size_t{64} << 20}) {
    std::vector<float> from(bytes / sizeof(float), 1.0f), to(from.size());
    std::vector<double> times;
    for (int i = bytes > (std::size_t{1} << 20) ? 20 : 200; i >= 0; --i) {
      barrier();
      const auto begin = Clock::now();
      all_reduce(from.data(), to.data(), static_cast<std::int64_t>(from.size()));
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    times.erase(times.begin());  // the first touches memory
    std::sort(times.begin(), times.end());
    if (prints) std::printf("%zu %.1f %.1f\n", bytes, times[times.size() / 2], times[0]);
  }
}
