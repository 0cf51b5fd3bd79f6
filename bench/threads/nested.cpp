// Threads of a program's own that all call ein, as OpenMP's do, beside the same with a ThreadLimit
// of 1 in each, by turns: the ratio says what is lost where nobody thinks of the limit.
//
// usage: ein_nested_bench [--callers N] [--rounds N]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <ein/ein.hpp>

namespace {

using ein::Tensor;
using Clock = std::chrono::steady_clock;

struct Case {
  const char* name;
  std::int64_t calls;  // in all
  std::function<void()> call;
};

/// Seconds in which `callers` threads make the calls.
double seconds(const Case& what, int callers, bool limited) {
  std::atomic<std::int64_t> left{what.calls};
  std::atomic<bool> begins{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i) {
    threads.emplace_back([&] {
      const ein::ThreadLimit limit(limited ? 1 : 1024);
      while (!begins) std::this_thread::yield();
      while (left-- > 0) what.call();
    });
  }
  const auto start = Clock::now();
  begins = true;
  for (std::thread& thread : threads) thread.join();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

int main(int count, char** texts) {
  int callers = 8, rounds = 9;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = texts[i];
    if (name == "--callers") callers = std::atoi(texts[i + 1]);
    if (name == "--rounds") rounds = std::atoi(texts[i + 1]);
  }
  const Tensor small = ein::randn({64, 64}), large = ein::randn({512, 512}),
               rows = ein::randn({2000, 500});
  const std::vector<Case> cases{
      {"einsum 64 x 64 x 64", 20000, [&] { ein::einsum(small, small, "i k, k j -> i j"); }},
      {"einsum 512 x 512 x 512", 100, [&] { ein::einsum(large, large, "i k, k j -> i j"); }},
      {"softmax 2000 x 500", 400, [&] { ein::softmax(rows, "a [b]"); }},
      {"reduce 2000 x 500", 1000, [&] { ein::reduce(rows, "a b -> b", "sum"); }},
      {"rearrange 2000 x 500", 400, [&] { ein::rearrange(rows, "a b -> b a").clone(); }}};
  std::printf("%d callers, %d threads of ein; ratio: with limits of 1 over without\n", callers,
              ein::num_threads());
  for (const Case& what : cases) {
    double without = 1e300, with = 1e300;
    for (int round = 0; round < rounds; ++round) {
      without = std::min(without, seconds(what, callers, false));
      with = std::min(with, seconds(what, callers, true));
    }
    std::printf("%-24s %8.2f ms, with limits %8.2f ms, ratio %.2f\n", what.name, without * 1e3,
                with * 1e3, with / without);
  }
}
