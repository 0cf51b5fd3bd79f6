// Values that share an arena: none lies on another that is alive with it, each as low as it can.
#include "passes/memory_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "support/seeds.hpp"

namespace ein {
namespace {

constexpr std::int64_t alignment = 64;

bool are_alive_together(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}
bool overlap(std::int64_t a, std::int64_t a_bytes, std::int64_t b, std::int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

std::vector<Lifetime> random_lives(std::mt19937& random) {
  std::vector<Lifetime> lives(1 + random() % 40);
  for (Lifetime& life : lives) {
    life.bytes = static_cast<std::int64_t>(random() % 5 == 0 ? random() % 1000 : random() % 4 * 64);
    life.first = random() % 20;
    life.last = life.first + random() % 6;
  }
  return lives;
}

TEST(MemoryPlan, EachValueLiesAtTheLowestFreeOffset) {
  test::for_seeds(400, [](unsigned seed) {
    std::mt19937 random(seed);
    const std::vector<Lifetime> lives = random_lives(random);
    const Arena arena = plan_arena(lives);
    std::vector<std::size_t> order(lives.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return lives[a].bytes > lives[b].bytes; });
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t v = order[i];
      const std::int64_t size{lives[v].bytes}, at{arena.offsets[v]};
      const auto is_free = [&](std::int64_t offset) {
        return std::none_of(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(i),
                            [&](std::size_t other) {
                              return are_alive_together(lives[v], lives[other]) &&
                                     overlap(offset, size, std::int64_t{arena.offsets[other]},
                                             std::int64_t{lives[other].bytes});
                            });
      };
      EXPECT_EQ(at % alignment, 0);
      EXPECT_TRUE(is_free(at)) << "value " << v << " at " << at;
      for (std::int64_t lower = 0; lower < at; lower += alignment)
        EXPECT_FALSE(is_free(lower)) << "value " << v << " could lie at " << lower;
      bytes = std::max(bytes, at + size);
    }
    EXPECT_EQ(std::int64_t{arena.bytes}, bytes);
  });
}

}  // namespace
}  // namespace ein
