// Compiled functions for any length on a GPU: kernels take the sizes as arguments, and a CUDA graph
// is updated.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/optim.hpp>
#include <ein/nn.hpp>
#include "support/fake_counts.hpp"
#include "support/functions_of_lengths.hpp"

namespace ein {
namespace {

using namespace literals;

class LengthsOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("EIN_TEST_GPU")) GTEST_SKIP() << "the stand-in for the driver counts";
  }
};

/// Runs f on the GPU for each length, beside eager calls on the host.
struct Lengths {
  int traces = 0;
  std::set<std::string> plans;
  int modules = 0;  // that were loaded

  Lengths(const std::function<Tensor(const Tensor&)>& f, std::string_view type,
          const std::vector<Shape>& shapes, double tolerance = 1e-5) {
    auto there = compile(
        [&](const Tensor& x) {
          ++traces;
          return f(x);
        },
        {type});
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(shape.to_string());
      const Tensor x = randn(shape), moved = x.to(cuda);
      const int before = test::fake_count("modules");
      const Tensor got = there(moved);
      modules += test::fake_count("modules") - before;
      plans.insert(there.print());
      const auto size = [&](int axis) { return to_string(shape[axis]); };
      auto here = compile(f, {"b=" + size(0) + " s=" + size(1) + " c=" + size(2)});
      EXPECT_TRUE(all_close(got.to(cpu), here(x), tolerance, tolerance)) << there.print();
    }
  }
};

std::vector<Shape> lengths(std::int64_t b, std::initializer_list<std::int64_t> s, std::int64_t c) {
  std::vector<Shape> shapes;
  for (std::int64_t n : s) shapes.push_back({b, n, c});
  return shapes;
}

TEST_F(LengthsOnDevice, EveryOperation) {
  for (const auto& [name, function] : test::functions_of_lengths()) {
    SCOPED_TRACE(name);
    const Lengths run(function, "b s c=3", lengths(2, {37, 41, 45, 63, 55}, 3));
    std::printf("%s: %zu plans, %d modules\n", name, run.plans.size(), run.modules);
    EXPECT_EQ(run.traces, 1);
    if (run.modules > 3) for (auto& p : run.plans) std::printf("%s\n", p.c_str());
    if (run.plans.size() > 1) std::printf("%s\n", run.plans.begin()->c_str());
  }
}

}  // namespace
}  // namespace ein
