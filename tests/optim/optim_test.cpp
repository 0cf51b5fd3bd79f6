// Optimizers against the figures of bench/peers/optimizer_figures.py, which are PyTorch's.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>
#include <ein/optim.hpp>
#include <ein/schedule.hpp>
#include "support/figures.hpp"

namespace ein::optim {
namespace {

using nlohmann::json;

std::array<double, 2> betas(const json& options) {
  return {options.at("betas")[0], options.at("betas")[1]};
}

std::unique_ptr<Optimizer> make(const std::string& kind, const ParameterGroups& parameters,
                                const json& o) {
  const double lr = o.at("lr"), decay = o.value("weight_decay", 0.0);
  const auto adam = [&] { return AdamOptions{lr, betas(o), o.at("eps"), decay}; };
  if (kind == "sgd") {
    return std::make_unique<SGD>(parameters,
                                 SGDOptions{lr, o.value("momentum", 0.0), o.value("dampening", 0.0),
                                            o.value("nesterov", false), decay});
  }
  if (kind == "adagrad" || kind == "adagrad_inside") {
    return std::make_unique<AdaGrad>(
        parameters,
        AdaGradOptions{lr, o.value("lr_decay", 0.0), o.value("initial_accumulator_value", 0.0),
                       o.at("eps"), kind == "adagrad_inside", decay});
  }
  if (kind == "rmsprop") {
    return std::make_unique<RMSProp>(
        parameters, RMSPropOptions{lr, o.at("alpha"), o.at("eps"), o.value("momentum", 0.0),
                                   o.value("centered", false), decay});
  }
  if (kind == "adam") return std::make_unique<Adam>(parameters, adam());
  if (kind == "adamw") return std::make_unique<AdamW>(parameters, adam());
  if (kind == "lamb")
    return std::make_unique<LAMB>(parameters, LAMBOptions{lr, betas(o), o.at("eps"), decay});
  throw std::runtime_error("no optimizer " + kind);
}

Shape shape_of(const json& sizes) {
  Shape shape;
  for (std::int64_t size : sizes) shape.push_back(size);
  return shape;
}

/// The gradient that the figures were made with: 0.1 · p + sin(step + i).
Tensor gradient(const Tensor& p, int step) {
  std::vector<double> values = p.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 0.1 * values[i] + std::sin(step + static_cast<double>(i));
  return from_vector(values, p.shape()).to(p.dtype());
}

void expect_near(const Tensor& p, const json& expected, double tolerance,
                 const std::string& where) {
  const std::vector<double> values = p.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  double largest = 0;
  for (const double e : expected) largest = std::max(largest, std::abs(e));
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i].get<double>(), tolerance * largest)
        << where << ", element " << i;
  }
}

void check_case(const std::string& kind, const json& file, const json& c, DType dtype,
                double tolerance) {
  const json& options = c.at("options");
  const json& start = c.contains("start") ? c.at("start") : file.at("start");
  std::vector<ParameterGroup> groups;
  std::vector<Tensor> parameters;
  for (std::size_t i = 0; i < start.size(); ++i) {
    const Tensor p =
        from_vector(start[i].get<std::vector<double>>(), shape_of(file.at("shapes")[i])).to(dtype);
    p.requires_grad(true);
    parameters.push_back(p);
    groups.push_back({{p}});
    if (options.contains("weight_decay_by_tensor"))
      groups.back().weight_decay = options.at("weight_decay_by_tensor")[i];
  }
  const std::unique_ptr<Optimizer> optimizer = make(kind, groups, options);
  for (int step = 1; step <= 100; ++step) {
    if (options.contains("schedule")) {
      const json& s = options.at("schedule");
      optimizer->set_learning_rate(CosineWithWarmup{
          s.at("lr"), s.at("min_lr"), s.at("warmup_iters"), s.at("decay_iters")}(step - 1));
    }
    for (const Tensor& p : parameters) p.set_grad(gradient(p, step));
    if (options.contains("clip_grad_norm"))
      clip_grad_norm(parameters, options.at("clip_grad_norm"));
    optimizer->step();
    const auto expected = c.at("after").find(std::to_string(step));
    if (expected == c.at("after").end()) continue;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string where = kind + " " + options.dump() + " in " + std::string(name(dtype)) +
                                ", step " + std::to_string(step) + ", tensor " + std::to_string(i);
      expect_near(parameters[i], (*expected)[i], tolerance, where);
    }
  }
}

class Figures : public testing::TestWithParam<const char*> {};

TEST_P(Figures, InF64) {
  const json file = test::figures("optim/" + std::string(GetParam()) + ".json");
  ASSERT_GE(file.at("cases").size(), 2u);
  for (const json& c : file.at("cases")) {
    // The norm that clips is in f32.
    check_case(GetParam(), file, c, DType::f64,
               c.at("options").contains("clip_grad_norm") ? 1e-6 : 1e-12);
  }
}

TEST_P(Figures, InF32) {
  const json file = test::figures("optim/" + std::string(GetParam()) + ".json");
  for (const json& c : file.at("cases")) check_case(GetParam(), file, c, DType::f32, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Optim, Figures,
                         testing::Values("sgd", "adagrad", "adagrad_inside", "rmsprop", "adam",
                                         "adamw", "lamb"),
                         [](const auto& info) { return std::string(info.param); });

// --- one of each, for what they share ---

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Optimizer>(const ParameterGroups&)> make;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class Optimizers : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Optimizer> make(const ParameterGroups& parameters) const {
    return GetParam().make(parameters);
  }
};

template <class O, class Options>
Kind kind(const char* name, Options options) {
  return {name, [options](const ParameterGroups& parameters) {
            return std::make_unique<O>(parameters, options);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Optim, Optimizers,
    testing::Values(
        kind<SGD>("sgd", SGDOptions{.learning_rate = 0.1,
                                    .momentum = 0.9,
                                    .dampening = 0.5,
                                    .weight_decay = 0.1}),
        kind<AdaGrad>("adagrad", AdaGradOptions{.learning_rate = 0.1, .learning_rate_decay = 0.1}),
        kind<RMSProp>("rmsprop",
                      RMSPropOptions{.learning_rate = 0.1, .momentum = 0.5, .centered = true}),
        kind<Adam>("adam", AdamOptions{.learning_rate = 0.1, .weight_decay = 0.1}),
        kind<AdamW>("adamw", AdamOptions{.learning_rate = 0.1, .weight_decay = 0.1}),
        kind<LAMB>("lamb", LAMBOptions{.learning_rate = 0.1, .weight_decay = 0.1})),
    [](const auto& info) { return std::string(info.param.name); });

Tensor parameter(std::vector<double> values, DType dtype = DType::f64) {
  const Tensor p = from_vector(values).to(dtype);
  p.requires_grad(true);
  return p;
}

void take_steps(Optimizer& optimizer, int first, int count) {
  for (int step = first; step < first + count; ++step) {
    for (const Tensor& p : optimizer.parameters()) p.set_grad(gradient(p, step));
    optimizer.step();
  }
}

std::map<std::string, std::vector<double>> values_of(const Optimizer& optimizer) {
  std::map<std::string, std::vector<double>> all;
  for (const auto& [key, tensor] : optimizer.state_dict()) all[key] = tensor.to_vector<double>();
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    all["parameter " + std::to_string(i)] = optimizer.parameters()[i].to_vector<double>();
  }
  return all;
}

TEST_P(Optimizers, ResumeFromStateBitForBit) {
  const Tensor a = parameter({1, -2, 3}), b = parameter({0.5, 0.25}, DType::bf16);
  const auto whole = make({a, b});
  take_steps(*whole, 1, 5);
  StateDict saved;
  for (const auto& [key, tensor] : whole->state_dict()) saved.emplace(key, tensor.clone());
  const Tensor a2 = a.detach().clone().requires_grad(true),
               b2 = b.detach().clone().requires_grad(true);
  take_steps(*whole, 6, 5);

  const auto resumed = make({a2, b2});
  resumed->load_state_dict(saved);
  take_steps(*resumed, 6, 5);
  EXPECT_EQ(values_of(*whole), values_of(*resumed));
}

TEST_P(Optimizers, SkipKeepsEverything) {
  const Tensor a = parameter({1, -2, 3}, DType::f32), b = parameter({0.5, 0.25}, DType::bf16);
  const auto optimizer = make({a, b});
  take_steps(*optimizer, 1, 2);
  const auto before = values_of(*optimizer);
  a.set_grad(full({3}, std::numeric_limits<double>::infinity()));
  b.set_grad(full({2}, std::numeric_limits<double>::quiet_NaN(), DType::bf16));
  const Tensor yes = full({}, true, DType::boolean), no = full({}, false, DType::boolean);
  optimizer->step(&yes);
  EXPECT_EQ(values_of(*optimizer), before);

  const Tensor a2 = a.detach().clone().requires_grad(true),
               b2 = b.detach().clone().requires_grad(true);
  const auto other = make({a2, b2});
  other->load_state_dict(optimizer->state_dict());
  for (const auto* o : {optimizer.get(), other.get()}) {
    for (const Tensor& p : o->parameters()) p.set_grad(gradient(p, 3));
  }
  optimizer->step(&no);
  other->step();
  EXPECT_EQ(values_of(*optimizer), values_of(*other));
  EXPECT_NE(values_of(*optimizer), before);
}

TEST_P(Optimizers, AParameterWithoutAGradientStays) {
  const Tensor a = parameter({1, 2}), b = parameter({3, 4});
  const auto optimizer = make({a, b});
  a.set_grad(gradient(a, 1));
  optimizer->step();
  EXPECT_NE(a.to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(b.to_vector<double>(), (std::vector<double>{3, 4}));
  EXPECT_EQ(optimizer->state_dict().at("step").item(), 1);
}

TEST_P(Optimizers, Bf16HasAMasterInF32) {
  const std::vector<double> start{1, -2, 0.5};
  const Tensor narrow = parameter(start, DType::bf16), wide = parameter(start, DType::f32);
  const auto of_narrow = make({narrow}), of_wide = make({wide});
  EXPECT_FALSE(of_wide->state_dict().contains("0.master"));
  for (int step = 1; step <= 20; ++step) {
    const Tensor g = gradient(wide, step).to(DType::bf16);
    narrow.set_grad(g);
    wide.set_grad(g.to(DType::f32));
    of_narrow->step();
    of_wide->step();
  }
  const Tensor master = of_narrow->state_dict().at("0.master");
  EXPECT_EQ(master.dtype(), DType::f32);
  EXPECT_EQ(master.to_vector<float>(), wide.to_vector<float>());
  EXPECT_EQ(narrow.to_vector<float>(), wide.detach().to(DType::bf16).to_vector<float>());
}

TEST_P(Optimizers, ZeroGradFreesGradients) {
  const Tensor a = parameter({1, 2});
  const auto optimizer = make({a});
  a.set_grad(gradient(a, 1));
  optimizer->zero_grad();
  EXPECT_FALSE(a.has_grad());
}

TEST_P(Optimizers, LearningRateOfTheNextStep) {
  const Tensor a = parameter({1, 2});
  const auto optimizer = make({a});
  EXPECT_EQ(optimizer->learning_rate(), 0.1);
  optimizer->set_learning_rate(0);
  EXPECT_EQ(optimizer->learning_rate(), 0);
  take_steps(*optimizer, 1, 3);
  EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{1, 2}));
  optimizer->set_learning_rate(0.01);
  take_steps(*optimizer, 4, 1);
  EXPECT_NE(a.to_vector<double>(), (std::vector<double>{1, 2}));
}

TEST_P(Optimizers, TheGradientMayBeNoLeafOfAGraphAndNothingIsRemembered) {
  const Tensor a = parameter({1, 2});
  const auto optimizer = make({a});
  reduce(a * a, "i ->", "sum").backward();
  optimizer->step();
  EXPECT_TRUE(a.requires_grad());
  for (const auto& [key, tensor] : optimizer->state_dict())
    EXPECT_FALSE(tensor.requires_grad()) << key;
}

TEST_P(Optimizers, ATensorWithoutElementsOrAxes) {
  const Tensor none = zeros({0, 3}).requires_grad(true),
               number = full({}, 2).to(DType::f32).requires_grad(true);
  const auto optimizer = make({none, number});
  none.set_grad(zeros({0, 3}));
  number.set_grad(ones({}));
  optimizer->step();
  EXPECT_LT(number.item(), 2);
}

TEST_P(Optimizers, CompiledStepsAreEagerSteps) {
  const Tensor a = parameter({1, -2, 3}, DType::f32), b = parameter({0.5, 0.25}, DType::bf16);
  const Tensor a2 = a.detach().clone().requires_grad(true),
               b2 = b.detach().clone().requires_grad(true);
  const auto eager = make({a, b}), compiled = make({a2, b2});
  const auto step_of = [](Optimizer& optimizer) {
    return [&optimizer](const Tensor& x, const Tensor& skip) {
      optimizer.zero_grad();
      const Tensor& p = optimizer.parameters()[0];
      const Tensor q = optimizer.parameters()[1].to(DType::f32);
      const Tensor loss =
          mse_loss(p * x, x * x + 0.5) + reduce(q * q * x.at({slice(0, 2)}), "i ->", "sum");
      loss.backward();
      optimizer.step(&skip);
      return loss;
    };
  };
  const auto step = step_of(*eager);
  auto program = compile(step_of(*compiled));
  for (int i = 0; i < 20; ++i) {
    for (Optimizer* optimizer : {eager.get(), compiled.get()})
      optimizer->set_learning_rate(0.1 / (1 + i));
    const Tensor x = from_vector(std::vector<float>{std::sin(i + 0.5f), std::cos(i + 1.5f), 0.3f});
    const Tensor skip = full({}, i % 5 == 3, DType::boolean);
    EXPECT_NEAR(step(x, skip).item(), program(x, skip).item(), 1e-5) << i;
  }
  EXPECT_TRUE(all_close(a, a2, 1e-5, 1e-6));
  EXPECT_TRUE(all_close(b, b2, 0.01, 1e-3));
  EXPECT_EQ(eager->state_dict().at("step").item(), 16);
  EXPECT_EQ(compiled->state_dict().at("step").item(), 16);
  EXPECT_FALSE(a2.has_grad());
}

TEST_P(Optimizers, StateMadeInsideOfATraceIsAnError) {
  const Tensor a = parameter({1, 2});
  auto program = compile([&](const Tensor& x) {
    const auto optimizer = make({a});
    return x;
  });
  try {
    program(a.detach());
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::value);
    EXPECT_NE(std::string(error.what()).find("make it outside"), std::string::npos) << error.what();
  }
}

// --- groups ---

TEST(Optim, GroupsHaveTheirOwnDecayAndRate) {
  const Tensor decayed = parameter({1}), plain = parameter({1}), slow = parameter({1});
  SGD optimizer({{.parameters = {decayed}, .weight_decay = 0.5},
                 {.parameters = {plain}},
                 {.parameters = {slow}, .weight_decay = 0.5, .learning_rate_factor = 0.1}},
                {.learning_rate = 0.1});
  for (const Tensor& p : optimizer.parameters()) p.set_grad(ones({1}, DType::f64));
  optimizer.step();
  EXPECT_DOUBLE_EQ(decayed.item(), 1 - 0.1 * 1.5);
  EXPECT_DOUBLE_EQ(plain.item(), 1 - 0.1);
  EXPECT_DOUBLE_EQ(slow.item(), 1 - 0.01 * 1.5);
}

TEST(Optim, AdamWDecaysOnlyWhereAsked) {
  const Tensor weight = parameter({2}), bias = parameter({2});
  AdamW optimizer({{.parameters = {weight}, .weight_decay = 0.1}, {.parameters = {bias}}},
                  {.learning_rate = 0.1, .eps = 0});
  for (const Tensor& p : optimizer.parameters()) p.set_grad(ones({1}, DType::f64));
  optimizer.step();
  EXPECT_NEAR(weight.item(), 2 * (1 - 0.01) - 0.1, 1e-15);
  EXPECT_NEAR(bias.item(), 2 - 0.1, 1e-15);
}

/// 1000 steps of weight decay alone multiply by (1 - lr · weight_decay)^1000; as many roundings of
/// p to f32, half of them up, are off by 1e-6. With 1 - 1e-5 rounded to f32 it was 1.4e-5.
TEST(Optim, AdamWsDecayIsExactToRounding) {
  manual_seed(3);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    const Tensor p = (rand({1000}, DType::f64) + 1.0).to(dtype).requires_grad(true);
    const std::vector<double> before = p.to_vector<double>();
    AdamW optimizer({p}, {.learning_rate = 1e-3, .weight_decay = 0.01});
    for (int step = 0; step < 1000; ++step) {
      p.set_grad(zeros({1000}, dtype));
      optimizer.step();
    }
    const StateDict state = optimizer.state_dict();
    const Tensor exact = state.contains("0.master") ? state.at("0.master") : p.detach();
    const std::vector<double> after = exact.to_vector<double>();
    double mean = 0;
    for (std::size_t i = 0; i < after.size(); ++i)
      mean += (after[i] / (before[i] * std::exp(1000 * std::log1p(-1e-5))) - 1) / 1000;
    EXPECT_NEAR(mean, 0, dtype == DType::f64 ? 1e-14 : 1e-6) << ein::name(dtype);
  }
}

// --- state ---

TEST(Optim, StateIsNamedByParameter) {
  const Adam adam({parameter({1, 2}), parameter({3}, DType::bf16)});
  std::vector<std::string> keys;
  for (const auto& [key, tensor] : adam.state_dict()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"0.exp_avg", "0.exp_avg_sq", "1.exp_avg",
                                            "1.exp_avg_sq", "1.master", "learning_rate", "step"}));
  EXPECT_EQ(SGD({parameter({1})}).state_dict().size(), 2u);
}

template <class F>
void expect_error(ErrorKind kind, const std::string& part, F&& f) {
  try {
    f();
    ADD_FAILURE() << "no error: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Optim, AStateThatDoesNotFitChangesNothing) {
  const Tensor p = parameter({1, 2});
  SGD optimizer({p}, {.learning_rate = 0.5, .momentum = 0.9});
  const auto before = values_of(optimizer);
  StateDict missing = optimizer.state_dict();
  missing.erase("0.momentum");
  expect_error(ErrorKind::value, "\"0.momentum\" is missing",
               [&] { optimizer.load_state_dict(missing); });
  StateDict unknown = optimizer.state_dict();
  unknown["1.momentum"] = zeros({2});
  expect_error(ErrorKind::value, "\"1.momentum\" is unknown",
               [&] { optimizer.load_state_dict(unknown); });
  StateDict other = optimizer.state_dict();
  other["0.momentum"] = ones({2});
  other["step"] = zeros({1});
  expect_error(ErrorKind::shape, "\"step\" has shape (1,)",
               [&] { optimizer.load_state_dict(other); });
  StateDict complex = optimizer.state_dict();
  complex["0.momentum"] = ones({2});
  complex["step"] = zeros({}, DType::c64);
  expect_error(ErrorKind::dtype, "\"step\" is c64", [&] { optimizer.load_state_dict(complex); });
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* key : {"learning_rate", "step"}) {
    for (const double number : {-1.0, nan, std::numeric_limits<double>::infinity()}) {
      StateDict wrong = optimizer.state_dict();
      wrong["0.momentum"] = ones({2});
      wrong[key] = full({}, number, DType::f64);
      expect_error(ErrorKind::value, std::string(key) + " is ",
                   [&] { optimizer.load_state_dict(wrong); });
    }
  }
  const Mesh mesh({{"data", 2}});
  StateDict elsewhere = optimizer.state_dict();
  elsewhere["0.momentum"] = place(ones({2}), mesh, "i@data");
  elsewhere["learning_rate"] = full({}, 0.25, DType::f64);
  expect_error(ErrorKind::placement, "\"0.momentum\" lies",
               [&] { optimizer.load_state_dict(elsewhere); });
  EXPECT_EQ(values_of(optimizer), before);
}

// --- errors ---

TEST(Optim, Errors) {
  const Tensor p = parameter({1, 2});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_error(ErrorKind::value, "SGD: there are no parameters",
               [] { SGD(std::vector<Tensor>()); });
  expect_error(ErrorKind::value, "parameter 1 of shape (2,) was given before", [&] {
    Adam({p, p});
  });
  expect_error(ErrorKind::value, "parameter 1 of shape (2,) was computed from others", [&] {
    Adam({p, parameter({1, 2}) * 2.0});
  });
  expect_error(ErrorKind::dtype, "parameter 0 of shape (3,) is i64", [] { SGD({arange(3)}); });
  expect_error(ErrorKind::value, "learning_rate is -1", [&] { SGD({p}, {.learning_rate = -1}); });
  expect_error(ErrorKind::value, "learning_rate is nan", [&] { SGD({p}).set_learning_rate(nan); });
  expect_error(ErrorKind::value, "momentum", [&] { SGD({p}, {.momentum = -0.1}); });
  expect_error(ErrorKind::value, "nesterov", [&] { SGD({p}, {.nesterov = true}); });
  expect_error(ErrorKind::value, "nesterov",
               [&] { SGD({p}, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}); });
  expect_error(ErrorKind::value, "betas[1] is 1", [&] { Adam({p}, {.betas = {0.9, 1}}); });
  expect_error(ErrorKind::value, "betas[0] is nan", [&] { LAMB({p}, {.betas = {nan, 0.9}}); });
  expect_error(ErrorKind::value, "eps", [&] { RMSProp({p}, {.eps = -1}); });
  expect_error(ErrorKind::value, "weight_decay",
               [&] { AdamW({{.parameters = {p}, .weight_decay = -1}}); });
  SGD optimizer({p});
  const Tensor number = zeros({}), vector = zeros({2}, DType::boolean);
  expect_error(ErrorKind::dtype, "skip is f32", [&] { optimizer.step(&number); });
  expect_error(ErrorKind::shape, "skip has shape (2,)", [&] { optimizer.step(&vector); });
}

// --- gradient accumulation ---

TEST(Optim, MicroBatchesEqualOneLargeBatch) {
  manual_seed(7);
  const Tensor x = randn({12, 5}, DType::f64), y = randn({12}, DType::f64),
               start = randn({5}, DType::f64);
  const auto loss = [](const Tensor& w, const Tensor& inputs, const Tensor& targets) {
    return mse_loss(tanh(einsum(inputs, w, "b d, d -> b")), targets);
  };
  const auto train = [&](std::int64_t parts) {
    const Tensor w = start.clone().requires_grad(true);
    AdamW optimizer({w}, {.learning_rate = 0.1, .weight_decay = 0.1});
    for (int step = 0; step < 10; ++step) {
      const std::int64_t size = 12 / parts;
      for (std::int64_t part = 0; part < parts; ++part) {
        const Slice rows = slice(part * size, (part + 1) * size);
        (loss(w, x.at({rows}), y.at({rows})) / parts).backward();
      }
      optimizer.step();
      optimizer.zero_grad();
    }
    return w.detach();
  };
  const Tensor whole = train(1);
  EXPECT_FALSE(all_close(whole, start, 1e-3));
  for (std::int64_t parts : {2, 3, 12}) EXPECT_TRUE(all_close(train(parts), whole, 1e-11)) << parts;
}

}  // namespace
}  // namespace ein::optim
