// Optimizers that are written outside of the library.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/optim.hpp>
#include "support/expect_error.hpp"

namespace ein {
namespace {

using test::expect_error;
using Values = std::vector<double>;

/// AdaGrad as the lecture writes it: g2 += g², p -= lr · g / √(g2 + 1e-5).
class LectureRule : public optim::Rule {
 public:
  LectureRule() : Rule("lecture", {{"g2"}}) {}
  std::vector<Tensor> update(const Values& v) const override {
    const Tensor g2 = v.state[0] + v.g * v.g;
    return {v.p - v.numbers[0] * v.g / sqrt(g2 + 1e-5), g2};
  }
};

template <class R>
struct Own : optim::Optimizer {
  Own(const optim::ParameterGroups& parameters, double learning_rate, R rule = R())
      : Optimizer(parameters, learning_rate, 0, std::make_unique<R>(std::move(rule))) {}
};

/// A rule that returns what a function says.
class AnyRule : public optim::Rule {
 public:
  using Update = std::function<std::vector<Tensor>(const Values&)>;
  AnyRule(std::vector<optim::StateTensor> state, Update update)
      : Rule("any", std::move(state)), update_(std::move(update)) {}
  std::vector<Tensor> update(const Values& v) const override { return update_(v); }

 private:
  Update update_;
};

Tensor parameter(const Values& values, DType dtype = DType::f32) {
  Tensor p = from_vector(values).to(dtype);
  p.requires_grad(true);
  return p;
}

TEST(OwnOptimizer, DoesWhatAdaGradDoes) {
  const Tensor mine = parameter({1, -2, 3}), theirs = parameter({1, -2, 3});
  Own<LectureRule> own({mine}, 0.1);
  optim::AdaGrad known({theirs}, {.learning_rate = 0.1, .eps = 1e-5, .eps_inside_root = true});
  for (int step = 0; step < 5; ++step) {
    for (const Tensor& p : {mine, theirs}) reduce(p * p * p, "i ->", "sum").backward();
    own.step();
    known.step();
    own.zero_grad();
    known.zero_grad();
    const Values a = mine.to_vector<double>(), b = theirs.to_vector<double>();
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
  }
  EXPECT_EQ(own.state_dict().at("step").item(), 5);
  EXPECT_TRUE(own.state_dict().contains("0.g2"));
}

TEST(OwnOptimizer, CompiledStepsAndMasterCopies) {
  const Tensor a = parameter({1, -2}, DType::bf16), b = parameter({1, -2}, DType::bf16);
  Own<LectureRule> eager({a}, 0.01), traced({b}, 0.01);
  const auto step = [](const Tensor& p, optim::Optimizer& optimizer) {
    reduce(p * p, "i ->", "sum").backward();
    optimizer.step();
    optimizer.zero_grad();
  };
  auto compiled = compile([&] { step(b, traced); });
  for (int i = 0; i < 4; ++i) {
    step(a, eager);
    compiled();
    EXPECT_EQ(a.to_vector<double>(), b.to_vector<double>());
  }
  EXPECT_EQ(eager.state_dict().at("0.master").dtype(), DType::f32);
}

TEST(OwnOptimizer, ValuesMayBeThoseThatWereThere) {
  const Tensor p = parameter({1, 2});
  Own<AnyRule> swaps({p}, 1, AnyRule({{"other", 7}}, [](const optim::Rule::Values& v) {
                       return std::vector<Tensor>{v.state[0], v.p};
                     }));
  reduce(p, "i ->", "sum").backward();
  swaps.step();
  EXPECT_EQ(p.to_vector<double>(), (Values{7, 7}));
  EXPECT_EQ(swaps.state_dict().at("0.other").to_vector<double>(), (Values{1, 2}));
}

TEST(OwnOptimizer, WrongRules) {
  const auto run = [](std::vector<optim::StateTensor> state, AnyRule::Update update) {
    return [=] {
      const Tensor p = parameter({1, 2});
      Own<AnyRule> own({p}, 1, AnyRule(state, update));
      reduce(p, "i ->", "sum").backward();
      own.step();
    };
  };
  expect_error(run({{"m"}}, [](const auto& v) { return std::vector<Tensor>{v.p}; }),
               ErrorKind::value,
               {"any: its rule returned 1 tensors; the parameter and its states are 2"});
  expect_error(run({}, [](const auto& v) { return std::vector<Tensor>{v.numbers[0]}; }),
               ErrorKind::shape,
               {"any: its rule returned f32 () for the parameter, which is f32 (2,)"});
  expect_error(run({{"m"}},
                   [](const auto& v) {
                     return std::vector<Tensor>{v.p, v.p.to(DType::f64)};
                   }),
               ErrorKind::dtype,
               {"any: its rule returned f64 (2,) for the state \"m\", which is f32 (2,)"});
  expect_error(run({{"m"}, {"m"}}, [](const auto& v) { return std::vector<Tensor>{v.p}; }),
               ErrorKind::value, {"any: the name of the state \"m\" is taken"});
  expect_error(run({{"master"}}, [](const auto& v) { return std::vector<Tensor>{v.p}; }),
               ErrorKind::value, {"any: the name of the state \"master\" is taken"});
}

}  // namespace
}  // namespace ein
