// The choice among the ways to do a contraction, and what a user may ask of them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <ein/ein.hpp>

#include "cuda/tuner.hpp"
#include "support/emitted_nests.hpp"
#include "support/fake_counts.hpp"

namespace ein::test {
namespace {

namespace fs = std::filesystem;

class TunerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("EIN_TEST_GPU")) GTEST_SKIP() << "the stand-in for the driver counts";
  }
  static int launches() { return test::fake_count("launches"); }
};

TEST_F(TunerTest, TakesTheFastestAndRemembersIt) {
  gpu::Gpu& gpu = gpu::Gpu::of_system(0);
  const Program program = lowered(
      graph_of_pattern(Operation::einsum, "m k, n k -> m n", {{140, 32}, {136, 32}}, DType::bf16));
  const LoopNest& nest = program.nests.at(0);
  const std::vector<codegen::Alternative> all = codegen::alternatives(nest, gpu.target());
  ASSERT_GT(all.size(), 3u);
  // The stand-in's clock counts threads.
  std::size_t least = 0;
  const auto threads = [&](std::size_t i) {
    unsigned sum = 0;
    for (const codegen::KernelSource& kernel : all[i].kernels)
      sum += kernel.grid()[0] * kernel.grid()[1] * kernel.block[0];
    return sum;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (threads(i) < threads(least)) least = i;
  }
  EXPECT_NE(least, 0u) << "the first is the fastest, so that nothing would show";

  const int before = launches();
  EXPECT_EQ(gpu::Tuner(gpu).fastest(nest, all), least);
  const int after = launches();
  EXPECT_GE(after - before, static_cast<int>(2 * all.size()));
  EXPECT_EQ(gpu::Tuner(gpu).fastest(nest, all), least);
  EXPECT_EQ(launches(), after) << "what is known was timed again";

  // Damaged entries are as good as none.
  for (const fs::directory_entry& entry :
       fs::directory_iterator(std::string(std::getenv("XDG_CACHE_HOME")) + "/ein/cubin")) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('?');
  }
  EXPECT_EQ(gpu::Tuner(gpu).fastest(nest, all), least);
  EXPECT_GT(launches(), after);

  // Other alternatives have their own choice.
  const std::vector<codegen::Alternative> others(all.begin(), all.begin() + 2);
  EXPECT_LT(gpu::Tuner(gpu).fastest(nest, others), others.size());
}

TEST_F(TunerTest, CallsAreRightWhicheverIsTaken) {
  tune();
  for (const Shape& shape : {Shape{3, 40, 24}, Shape{2, 136, 32}}) {
    const Tensor x = randn(shape).to(DType::bf16);
    const Tensor here = einsum(x, x, "b q d, b k d -> b q k");
    const Tensor there = einsum(x.to(cuda), x.to(cuda), "b q d, b k d -> b q k").to(cpu);
    const std::vector<float> want = here.to(DType::f32).to_vector<float>(),
                             got = there.to(DType::f32).to_vector<float>();
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 0.01 * std::abs(want[i]) + 0.01) << i;
  }
  tune(false);
}

TEST(AllowTf32, RoundsOperandsOnlyWhenAsked) {
  const Tensor x = rand({32, 48}), y = rand({48, 32});
  const auto difference = [&] {
    const Tensor want = einsum(x, y, "m k, k n -> m n");
    const Tensor got = einsum(x.to(cuda), y.to(cuda), "m k, k n -> m n").to(cpu);
    return reduce(abs(got - want), "m n ->", Reduction::max).item();
  };
  EXPECT_LT(difference(), 1e-5);
  allow_tf32();
  const double rounded = difference();
  allow_tf32(false);
  EXPECT_GT(rounded, 1e-5);
  EXPECT_LT(rounded,
            48 * std::ldexp(1.0, -10));  // two operands, each off by 2^-11 of itself at most
  EXPECT_LT(difference(), 1e-5);
}

}  // namespace
}  // namespace ein::test
