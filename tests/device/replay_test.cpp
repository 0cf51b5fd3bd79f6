// How often a compiled function's work is started: one by one at first, then as one graph, and the
// update of many parameters in few kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include "support/fake_counts.hpp"

namespace ein {
namespace {

/// What the stand-in for the driver counts: calls that start work, kernels that ran, and tensor
/// maps that were encoded.
struct Counts {
  int launches = 0, kernels = 0, tensor_maps = 0;
  static Counts now() {
    return {test::fake_count("launches"), test::fake_count("kernels"),
            test::fake_count("tensor_maps")};
  }
  Counts since(const Counts& before) const {
    return {launches - before.launches, kernels - before.kernels, tensor_maps - before.tensor_maps};
  }
};
template <class F>
Counts counts_of(F&& f) {
  const Counts before = Counts::now();
  f();
  return Counts::now().since(before);
}

class Replay : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("EIN_TEST_GPU")) GTEST_SKIP() << "the stand-in for the driver counts";
  }
};

/// Twelve kernels: none of the reductions can be fused with the next, which is across the other
/// axis.
Tensor chain(Tensor x) {
  for (int i = 0; i < 6; ++i) {
    x = x - reduce(x, "i j -> 1 j", Reduction::max) * 0.5f;
    x = x - reduce(x, "i j -> i 1", Reduction::max) * 0.5f;
  }
  return x;
}

TEST_F(Replay, StartsAtOnceFromTheSecondRunOn) {
  auto f = compile([](const Tensor& x) { return chain(x); });
  std::vector<Tensor> kept;  // so that each run writes elsewhere
  for (int run = 0; run < 5; ++run) {
    const Tensor x = randn({5, 7}), there = x.to(cuda);
    f.prepare(there);
    Tensor result;
    const Counts counts = counts_of([&] { result = f(there); });
    EXPECT_GE(counts.kernels, 8);
    EXPECT_EQ(counts.launches, run == 0 ? counts.kernels : 1) << run;
    EXPECT_TRUE(all_close(result.to(cpu), chain(x), 1e-6, 1e-6)) << run;
    kept.push_back(there);
    kept.push_back(result);
  }
  // Nothing was written over.
  for (std::size_t run = 0; run < 5; ++run)
    EXPECT_TRUE(all_close(kept[2 * run + 1].to(cpu), chain(kept[2 * run].to(cpu)), 1e-6, 1e-6));
}

TEST_F(Replay, OtherLengthsAreOtherArguments) {
  auto f = compile([](const Tensor& x) { return chain(x); }, {"i=5 j"});
  const int graphs = test::fake_count("graphs");
  std::set<std::string> plans;
  for (int run = 0; run < 24; ++run) {
    const Tensor x = randn({5, 260 + 4 * run}), there = x.to(cuda);
    f.prepare(there);
    Tensor result;
    const Counts counts = counts_of([&] { result = f(there); });
    EXPECT_GE(counts.kernels, 8);
    EXPECT_EQ(counts.launches, run == 0 ? counts.kernels : 1) << run;
    EXPECT_TRUE(all_close(result.to(cpu), chain(x), 1e-6, 1e-6)) << run;
    plans.insert(f.text());
  }
  EXPECT_EQ(plans.size(), 1u);
  EXPECT_EQ(test::fake_count("graphs") - graphs, 1);
}

TEST_F(Replay, RandomNumbersGoOn) {
  const auto noisy = [](const Tensor& x) { return chain(x + rand(x.shape(), x.device())); };
  auto here = compile(noisy), there = compile(noisy);
  const Tensor x = randn({4, 6}), moved = x.to(cuda);
  manual_seed(5);
  std::vector<Tensor> want, got;
  for (int run = 0; run < 4; ++run) want.push_back(here(x));
  manual_seed(5);
  for (int run = 0; run < 4; ++run) got.push_back(there(moved));
  for (std::size_t run = 0; run < 4; ++run) {
    EXPECT_TRUE(all_close(got[run].to(cpu), want[run], 1e-6, 1e-6)) << run;
    if (run > 0) {
      EXPECT_FALSE(all_close(want[run], want[run - 1], 1e-6, 1e-6));
    }
  }
}

TEST_F(Replay, TensorMapsAreEncodedAgainWhereMemoryIsElsewhere) {
  const auto product = [](const Tensor& x, const Tensor& y) {
    return chain(einsum(x, y, "b i k, b k j -> (b i) j").to(DType::f32));
  };
  const auto random = [](const Shape& shape) { return randn(shape).to(DType::bf16); };
  auto f = compile(product);
  const Tensor x = random({66, 16, 64}), here[] = {random({66, 64, 16}), random({66, 64, 16})};
  const Tensor moved = x.to(cuda), there[] = {here[0].to(cuda), here[1].to(cuda)};
  f.prepare(moved, there[0]);
  const int encoded[] = {2, 2, 0, 1, 0, 1};  // the first run is no replay
  for (int run = 0; run < 6; ++run) {
    const int which = run == 3 || run == 4;
    Tensor result;
    EXPECT_EQ(counts_of([&] { result = f(moved, there[which]); }).tensor_maps, encoded[run]) << run;
    EXPECT_TRUE(all_close(result.to(cpu), product(x, here[which]), 0.02, 0.02)) << run;
  }
}

TEST_F(Replay, DriversWithoutIt) {
  for (const char* wrong :
       {"cuGraphCreate=801", "cuGraphAddKernelNode_v2=1", "cuGraphInstantiateWithFlags=801",
        "cuGraphLaunch=1", "cuGraphExecKernelNodeSetParams_v2=1"}) {
    auto f = compile([](const Tensor& x) { return chain(x); });
    ::setenv("FAKE_CUDA", wrong, 1);
    for (int run = 0; run < 4; ++run) {
      const Tensor x = randn({3, 4});
      EXPECT_TRUE(all_close(f(x.to(cuda)).to(cpu), chain(x), 1e-6, 1e-6)) << wrong << " " << run;
    }
    ::unsetenv("FAKE_CUDA");
  }
}

/// The parameters after three steps of AdamW on twenty of them, and the counts of each step.
std::pair<std::vector<std::vector<double>>, std::vector<Counts>> trained(Device device,
                                                                         DType dtype) {
  manual_seed(2);
  std::vector<Tensor> parameters;
  for (int i = 0; i < 20; ++i) {
    // Ragged, larger than a block; one of a single element.
    const std::int64_t sizes[] = {5, 44, 3000, 61};
    parameters.push_back(randn({i == 3 ? 1 : sizes[i % 4]}).to(dtype).to(device));
    parameters.back().requires_grad(true);
  }
  optim::AdamW optimizer(parameters, {.learning_rate = 0.1});
  auto step = compile([&](const Tensor& scale) {
    for (const Tensor& p : parameters) p.set_grad((p.detach() * scale + 1).to(dtype));
    optimizer.step();
  });
  std::vector<Counts> counts;
  for (int run = 0; run < 3; ++run) {
    const Tensor scale = full({}, 0.5 + run, DType::f32, device);
    step.prepare(scale);
    counts.push_back(counts_of([&] { step(scale); }));
  }
  std::vector<std::vector<double>> values;
  for (const Tensor& p : parameters) values.push_back(p.to_vector<double>());
  return {values, counts};
}

TEST_F(Replay, ManyParametersAreFewKernels) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    // Parameters of bf16 have a master copy in f32; one that falls between two of bf16 may be
    // rounded to either.
    const double tolerance = dtype == DType::f32 ? 2e-6 : 0x1p-8;
    const auto [want, none] = trained(cpu, dtype);
    const auto [got, counts] = trained(cuda, dtype);
    // Gradients and updates of all parameters, but for the one of a single element, are one kernel;
    // then there are the step's number and what follows from it.
    EXPECT_LE(counts[0].kernels, 14) << name(dtype);
    EXPECT_EQ(counts[2].kernels, counts[0].kernels);
    EXPECT_LE(counts[2].launches, counts[2].kernels);
    for (std::size_t p = 0; p < want.size(); ++p) {
      for (std::size_t i = 0; i < want[p].size(); ++i)
        ASSERT_NEAR(got[p][i], want[p][i], tolerance * (1 + std::abs(want[p][i]))) << p << " " << i;
    }
  }
}

}  // namespace
}  // namespace ein
