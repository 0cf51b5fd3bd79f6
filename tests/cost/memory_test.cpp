// Memory: what is predicted of a call is what the allocator then measures, to the byte.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include "support/sanitized.hpp"
namespace ein {
namespace {

TEST(Memory, CountsWhatIsAlive) {
  const std::size_t before = memory_allocated();
  {
    const Tensor a = zeros({32, 32}), b = zeros({32, 32});
    EXPECT_EQ(memory_allocated() - before, 8192u);
    const Tensor view = rearrange(a, "i j -> j i");
    EXPECT_EQ(memory_allocated() - before, 8192u);
    EXPECT_EQ((a + b).nbytes(), 4096u);
    EXPECT_EQ(memory_allocated() - before, 8192u);
  }
  EXPECT_EQ(memory_allocated(), before);
  std::vector<float> outside(16);
  const Tensor wrapped(Storage::wrap(outside.data(), 64, std::make_shared<int>()), DType::f32, {16},
                       {1});
  EXPECT_EQ(memory_allocated(), before);
}

/// Runs `call` and compares the measured peak with the one predicted for its one entry.
template <class Call>
void expect_predicted(Call&& call) {
  call();  // whatever a first call makes on the side
  const CostScope scope;
  const std::size_t before = memory_allocated();
  reset_max_memory_allocated();
  const Tensor result = call();
  ASSERT_EQ(scope.entries().size(), 1u);
  EXPECT_EQ(max_memory_allocated() - before, scope.entries()[0].peak_bytes)
      << scope.entries()[0].call;
}

// Of memory given back a bounded amount is kept: blocks of sizes that are no longer used must not
// displace those that are.
TEST(Memory, BlocksOfOldSizesMakeRoom) {
  constexpr std::int64_t mib =
      1 << 18;  // in f32; nothing is written, so the system gives no memory for it
  const std::size_t reserved_before = memory_reserved();
  for (std::int64_t size : {300, 400, 600}) empty({size * mib});
  if (test::is_sanitized()) {
    // A sanitizer is to see every allocation: nothing is kept.
    EXPECT_LE(memory_reserved(), reserved_before);
    return;
  }
  const void* const block = empty({600 * mib}).raw_data();
  const Tensor other = empty({500 * mib});
  EXPECT_EQ(empty({600 * mib}).raw_data(), block);
}

TEST(Memory, ProgramsOfAFunctionShareTheirMemory) {
  const std::size_t before = memory_allocated();
  auto f = compile([](const Tensor& x) {
    const Tensor h = einsum(x, x, "a b, c b -> a c");
    return reduce(softmax(h, "a [c]"), "a c -> a", "max");
  });
  std::size_t most = 0;
  for (std::int64_t i = 1; i <= 200; ++i) {
    f(ones({100 + i, 8}));
    most = std::max(most, f.memory().arena + f.memory().workspace);
  }
  // One arena, and the results of the program that ran last.
  EXPECT_LE(memory_allocated() - before, most + f.memory().results);
  release_memory();
  EXPECT_EQ(memory_allocated(), before);
  f(ones({101, 8}));  // and it still runs, traced anew or not
  EXPECT_LE(memory_allocated() - before, most + f.memory().results);
}

TEST(Memory, PredictedPeakIsTheMeasuredOne) {
  const Tensor x = randn({8, 96, 64}), w = randn({64, 48}), h = randn({8, 96, 64}, DType::bf16);
  const Tensor wb = randn({64, 48}, DType::bf16), c = randn({6, 7, 8, 9}), d = randn({9, 7, 5});
  expect_predicted([&] { return einsum(x, w, "b s i, i o -> b s o"); });
  expect_predicted([&] { return einsum(h, wb, "b s i, i o -> b s o"); });     // converted operands
  expect_predicted([&] { return einsum(c, d, "a b c d, d b e -> c e a"); });  // packed operands
  expect_predicted([&] { return einsum(x, w, w, "b s i, i o, j o -> b j s"); });  // an intermediate
  expect_predicted([&] { return reduce(x, "b s i -> ", "sum"); });
  expect_predicted([&] { return reduce(x, "b s i -> b", "logsumexp"); });
  expect_predicted([&] { return reduce(x, "b s i -> s", "std"); });
  expect_predicted([&] { return rearrange(x, "b s i -> i (b s)"); });
  expect_predicted([&] { return rearrange(x, "b s i -> s b i"); });  // a view: nothing
  expect_predicted([&] { return gelu(x); });
  const Tensor large = randn({1 << 20});
  expect_predicted([&] { return reduce(large, "n -> ", "max"); });  // partial results
}

}  // namespace
}  // namespace ein
