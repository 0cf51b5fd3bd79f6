// A compiled step takes no memory from the heap while it runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/linalg.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include "support/sanitized.hpp"

namespace {
std::atomic<bool> counting{false};
std::atomic<int> allocations{0};
}  // namespace

#ifndef EIN_IS_SANITIZED
// Inlined, GCC takes the halves of a pair for a mismatch.
#define EIN_NOT_INLINE __attribute__((noinline))

namespace {
void* allocate(std::size_t size, std::size_t alignment) {
  if (counting.load(std::memory_order_relaxed)) ++allocations;
  const std::size_t rounded =
      (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
  void* const p = std::aligned_alloc(alignment, rounded);
  if (!p) throw std::bad_alloc();
  return p;
}
}  // namespace

EIN_NOT_INLINE void* operator new(std::size_t size) {
  return allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
EIN_NOT_INLINE void* operator new[](std::size_t size) {
  return allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
EIN_NOT_INLINE void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
EIN_NOT_INLINE void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
EIN_NOT_INLINE void operator delete(void* p) noexcept { std::free(p); }
EIN_NOT_INLINE void operator delete[](void* p) noexcept { std::free(p); }
EIN_NOT_INLINE void operator delete(void* p, std::size_t) noexcept { std::free(p); }
EIN_NOT_INLINE void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
EIN_NOT_INLINE void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
EIN_NOT_INLINE void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
EIN_NOT_INLINE void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
EIN_NOT_INLINE void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
#endif

namespace ein {
namespace {

class Allocation : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef EIN_IS_SANITIZED
    GTEST_SKIP() << "a sanitizer has the heap";
#endif
  }
  void TearDown() override { set_num_threads(threads_before_); }

  /// The least that one of some runs allocates after the first ones: a thread that met no large
  /// nest before may still grow its scratch memory once.
  template <class Run>
  static int allocations_of(Run&& run) {
    for (int i = 0; i < 2; ++i) run();
    int least = INT32_MAX;
    for (int i = 0; i < 4; ++i) {
      allocations = 0;
      counting = true;
      run();
      counting = false;
      least = std::min(least, allocations.load());
    }
    return least;
  }

 private:
  int threads_before_ = num_threads();
};

TEST_F(Allocation, IsCounted) {
  EXPECT_EQ(allocations_of([] { ::operator delete(::operator new(1)); }), 1);
  EXPECT_EQ(allocations_of([] {}), 0);
}

TEST_F(Allocation, NoneInACompiledTrainingStep) {
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    manual_seed(1);
    const nn::Transformer model({.vocab_size = 65,
                                 .block_size = 32,
                                 .n_layer = 2,
                                 .n_head = 4,
                                 .n_embd = 64,
                                 .dropout = 0.1});
    optim::AdamW optimizer(model.parameters(), {.learning_rate = 1e-3});
    const Tensor tokens = (rand({8, 32}) * 64).to(DType::i64), loss = zeros({});
    auto step = compile([&](const Tensor& x) {
      optimizer.zero_grad();
      const Tensor found = cross_entropy(model(x), x, "b s [v], b s");
      found.backward();
      clip_grad_norm(model.parameters(), 1);
      optimizer.step();
      loss.copy_from(found.detach());
    });
    EXPECT_EQ(allocations_of([&] { step(tokens); }), 0) << threads << " threads";
    EXPECT_GT(loss.item(), 0);
  }
}

// x ~ N(x, p) moves by f and is seen as h x.
TEST_F(Allocation, NoneInAStepOfAKalmanFilter) {
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    const Tensor x = zeros({100, 4}), p = eye(4).view({1, 4, 4}) + zeros({100, 4, 4}),
                 f = eye(4) + 0.01, h = eye(4).at({slice(0, 2)}).contiguous(), noise = eye(4) * 0.1;
    auto step = compile([&](const Tensor& seen) {
      const Tensor moved = einsum(f, x, "i j, b j -> b i"),
                   spread = einsum(f, p, f, "i j, b j k, l k -> b i l") + noise,
                   hp = einsum(h, spread, "o i, b i j -> b o j"),
                   s = einsum(hp, h, "b o j, u j -> b o u") + eye(2),
                   gain = solve(s, hp, "b [o u], b [o] j -> b [u] j"),
                   off = seen - einsum(h, moved, "o i, b i -> b o");
      x.copy_from(moved + einsum(gain, off, "b o j, b o -> b j"));
      p.copy_from(spread - einsum(gain, hp, "b o i, b o j -> b i j"));
    });
    const Tensor seen = randn({100, 2});
    EXPECT_EQ(allocations_of([&] { step(seen); }), 0) << threads << " threads";
    EXPECT_TRUE(std::isfinite(reduce(p, "b i j ->", "sum").item()));
  }
}

TEST_F(Allocation, OfAResultOnlyItsHandle) {
  auto f =
      compile([](const Tensor& x) { return softmax(einsum(x, x, "i k, j k -> i j"), "i [j]"); });
  const Tensor x = randn({64, 32});
  // The list of results, and what a tensor is: its shape, strides and so on.
  EXPECT_LE(allocations_of([&] { f(x); }), 2);
}

TEST_F(Allocation, NoneForSumsThatGoWhereTheyBelong) {
  const Tensor a = randn({64, 48}), b = randn({48, 96}), c = zeros({64, 96});
  EXPECT_EQ(allocations_of([&] { einsum_into(c, a, b, "i k, k j -> i j"); }), 0);
  // What holds the block for the sums, which is one that was used before.
  EXPECT_LE(allocations_of([&] { einsum_into(c, a, b, "i k, k j -> i j", 1, 1); }), 1);
  auto step = compile([&](const Tensor& x) { einsum_into(c, x, b, "i k, k j -> i j", 0.5, 1); });
  EXPECT_EQ(allocations_of([&] { step(a); }), 0);
}

}  // namespace
}  // namespace ein
