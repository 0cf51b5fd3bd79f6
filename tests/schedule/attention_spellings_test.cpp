// Ways to write attention in a compiled program: none keeps a matrix of scores, and all give what
// the same calls give in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/checkpoint.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/parallel.hpp>

#include "support/row_code.hpp"
#include "support/tensor_values.hpp"

namespace ein::test {
namespace {

constexpr std::int64_t n = 1024, d = 16;
constexpr double hidden = -std::numeric_limits<double>::infinity();

Tensor scores(const Tensor& q, const Tensor& k) {
  return einsum(q, k, "b q d, b k d -> b q k") / std::sqrt(static_cast<double>(d));
}
Tensor mix(const Tensor& weights, const Tensor& v) {
  return einsum(weights, v, "b q k, b k d -> b q d");
}
Tensor soft(const Tensor& s) { return softmax(s, "b q [k]"); }
Tensor largest(const Tensor& s) { return reduce(s, "b q k -> b q 1", "max"); }
Tensor by_hand(const Tensor& s) {
  const Tensor e = exp(s - largest(s));
  return e / reduce(e, "b q k -> b q 1", "sum");
}
Tensor before(const Tensor& s) {
  const Tensor at = arange(s.shape()[2]);
  return rearrange(at, "q -> q 1") >= at;
}
/// Of each pair of a query and a key.
Tensor distances(const Tensor& s) {
  const Tensor at = arange(s.shape()[2]).to(s.dtype());
  return abs(rearrange(at, "q -> q 1") - at);
}
/// Of each key: whether it is there, and which document it belongs to.
Tensor there(const Tensor& s) {
  return (arange(s.shape()[2]).to(s.dtype()) < 600.0).view({1, 1, s.shape()[2]});
}
Tensor document(const Tensor& s) { return floor(arange(s.shape()[2]).to(s.dtype()) / 100.0); }

using Attend = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>;
struct Spelling {
  std::string name;
  Attend attend;
};
void PrintTo(const Spelling& spelling, std::ostream* to) { *to << spelling.name; }
/// What is done to scores, and then softmax.
Spelling softmax_of(const std::string& name, const std::function<Tensor(const Tensor&)>& f) {
  return {name, [f](const Tensor& q, const Tensor& k, const Tensor& v) {
            return mix(soft(f(scores(q, k))), v);
          }};
}
/// What is done to scores instead of softmax.
Spelling weights_of(const std::string& name, const std::function<Tensor(const Tensor&)>& f) {
  return {name, [f](const Tensor& q, const Tensor& k, const Tensor& v) {
            return mix(f(scores(q, k)), v);
          }};
}

std::vector<Spelling> spellings() {
  const auto causal = [](const Tensor& s) { return tril(s, "b [q k]", 0, hidden); };
  return {
      softmax_of("Softmax", [](const Tensor& s) { return s; }),
      softmax_of("Tril", causal),
      softmax_of("TrilFilled", [](const Tensor& s) { return tril(s, "b [q k]", 0, -1e6); }),
      softmax_of("Where", [](const Tensor& s) { return where(before(s), s, hidden); }),
      softmax_of("WhereNot",
                 [](const Tensor& s) { return where(logical_not(before(s)), hidden, s); }),
      softmax_of("WhereFilled", [](const Tensor& s) { return where(before(s), s, -1e6); }),
      softmax_of("Window",
                 [&](const Tensor& s) { return triu(causal(s), "b [q k]", -63, hidden); }),
      softmax_of("BothSides",
                 [](const Tensor& s) { return where(distances(s) < 50.0, s, hidden); }),
      softmax_of("SoftCap", [](const Tensor& s) { return tanh(s / 3.0) * 3.0; }),
      softmax_of("SoftCapOfTril", [&](const Tensor& s) { return causal(tanh(s / 3.0) * 3.0); }),
      softmax_of("Distances", [&](const Tensor& s) { return causal(s - distances(s) * 0.1); }),
      softmax_of("Padding", [](const Tensor& s) { return where(there(s), s, hidden); }),
      softmax_of("Documents",
                 [&](const Tensor& s) {
                   const Tensor of = document(s);
                   return causal(where(rearrange(of, "q -> q 1") == of, s, hidden));
                 }),
      softmax_of("Prefix",
                 [](const Tensor& s) {
                   const Tensor at = arange(s.shape()[2]);
                   return where(logical_or(before(s), at < 100), s, hidden);
                 }),
      softmax_of("Dilated",
                 [&](const Tensor& s) {
                   const Tensor half = distances(s) / 2.0;
                   return where(floor(half) == half, s, hidden);
                 }),
      softmax_of("MaskFromOutside", [mask = before(zeros({1, 1, n}))](
                                        const Tensor& s) { return where(mask, s, hidden); }),
      softmax_of("BiasFromOutside",
                 [bias = randn({n, n})](const Tensor& s) { return s + bias.to(s.dtype()); }),
      softmax_of("Temperature", [](const Tensor& s) { return s * -0.5; }),
      weights_of("ByHand", by_hand),
      weights_of("ByHandDetached",
                 [](const Tensor& s) {
                   const Tensor e = exp(s - largest(s).detach());
                   return e / reduce(e, "b q k -> b q 1", "sum");
                 }),
      weights_of("ByHandOfTril", [&](const Tensor& s) { return by_hand(causal(s)); }),
      weights_of("Logsumexp",
                 [](const Tensor& s) { return exp(s - reduce(s, "b q k -> b q 1", "logsumexp")); }),
      weights_of("LogSoftmax", [](const Tensor& s) { return exp(log_softmax(s, "b q [k]")); }),
      {"Checkpoint",
       [](const Tensor& q, const Tensor& k, const Tensor& v) {
         return checkpoint([](const Tensor& a, const Tensor& b,
                              const Tensor& c) { return mix(soft(scores(a, b)), c); },
                           q, k, v);
       }},
  };
}

class AttentionSpellings : public testing::TestWithParam<Spelling> {};

/// The result, if it is wanted, and the gradients of all three.
std::vector<Tensor> step(const Attend& attend, const std::vector<Tensor>& x, bool wants_result) {
  std::vector<Tensor> leaves;
  for (int i = 0; i < 3; ++i) {
    leaves.push_back(x[static_cast<std::size_t>(i)].detach());
    leaves.back().requires_grad(true);
  }
  const Tensor out = attend(leaves[0], leaves[1], leaves[2]);
  std::vector<Tensor> all = gradients(out, x[3], leaves);
  if (wants_result) all.push_back(out.detach());
  return all;
}

TEST_P(AttentionSpellings, KeepsNoScores) {
  SKIP_WITHOUT_ROW_CODE;
  const Attend& attend = GetParam().attend;
  // Each thread has tiles of its own.
  const int usual = num_threads();
  set_num_threads(1);
  manual_seed(7);
  std::vector<Tensor> x;
  for (int i = 0; i < 4; ++i) x.push_back(randn({1, n, d}));
  std::vector<Tensor> wide;
  for (const Tensor& t : x) wide.push_back(t.to(DType::f64));
  const std::size_t matrix = static_cast<std::size_t>(n * n) * sizeof(float);
  const std::vector<Tensor> want = step(attend, wide, true);
  const auto expect_near = [](const Tensor& got, const Tensor& of_f64) {
    const std::vector<double> a = get_values(got), b = get_values(of_f64);
    double scale = 0;
    for (double value : b) scale = std::max(scale, std::abs(value));
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5 * scale) << i;
  };
  auto forward = compile([&](const Tensor& q, const Tensor& k, const Tensor& v) {
    const NoGrad none;
    return attend(q, k, v);
  });
  expect_near(forward(x[0], x[1], x[2]), want[3]);
  const auto of_forward = forward.memory();
  EXPECT_LT(of_forward.arena + of_forward.workspace, matrix / 2);
  for (bool wants_result : {false, true}) {
    auto both = compile([&](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g) {
      return step(attend, {q, k, v, g}, wants_result);
    });
    const std::vector<Tensor> got = both(x[0], x[1], x[2], x[3]);
    for (std::size_t i = 0; i < got.size(); ++i) expect_near(got[i], want[i]);
    const auto of_both = both.memory();
    EXPECT_LT(of_both.arena + of_both.workspace, matrix / 2)
        << (wants_result ? "with" : "without") << " the result";
  }
  set_num_threads(usual);
}
INSTANTIATE_TEST_SUITE_P(, AttentionSpellings, testing::ValuesIn(spellings()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ein::test
