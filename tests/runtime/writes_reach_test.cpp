// What is written to a tensor reaches everything that holds a copy of it or was made of it: every
// holder below, by every way to write.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include "support/expect_error.hpp"

namespace ein {
namespace {

using test::expect_error;
using Values = std::vector<double>;

Values values(const Tensor& x) { return x.to_vector<double>(); }

struct Holding : nn::Module {
  explicit Holding(const Tensor& x) : weight(x) { add_parameter("weight", weight); }
  Tensor weight;
};

// --- holders ---

/// What is seen of a tensor through something that was made of it and is used again and again.
using Use = std::function<Values()>;
struct Holder {
  std::string name;
  std::function<Use(const Tensor& p)> make;
};

/// Steps of zero gradients change nothing, so p is what was written to it.
Holder steps_of(const std::string& name,
                std::function<std::shared_ptr<optim::Optimizer>(const Tensor&)> make,
                bool is_compiled) {
  return {name + (is_compiled ? ", compiled" : ""), [make, is_compiled](const Tensor& p) -> Use {
            const auto optimizer = make(p);
            const auto step = [optimizer, p] {
              p.set_grad(zeros(p.shape(), p.dtype()));
              optimizer->step();
            };
            if (!is_compiled) {
              return [=] {
                step();
                return values(p);
              };
            }
            const auto program = std::make_shared<decltype(compile(step))>(compile(step));
            return [=] {
              (*program)();
              return values(p);
            };
          }};
}

template <class O>
void add_steps(std::vector<Holder>& holders, const std::string& name) {
  for (const bool is_compiled : {false, true}) {
    holders.push_back(steps_of(
        name, [](const Tensor& p) { return std::make_shared<O>(optim::ParameterGroups{p}); },
        is_compiled));
    holders.push_back(steps_of(
        name + ", sharded",
        [](const Tensor& p) {
          const auto optimizer = std::make_shared<O>(optim::ParameterGroups{p});
          optimizer->shard(Mesh({{"data", 2}}), "data");
          return optimizer;
        },
        is_compiled));
  }
}

std::vector<Holder> all_holders() {
  std::vector<Holder> holders{
      {"an eager call",
       [](const Tensor& p) -> Use { return [=] { return values(p.detach() * 2.0); }; }},
      {"a compiled function",
       [](const Tensor& p) -> Use {
         const auto f = [p] { return p.detach() * 2.0; };
         const auto program = std::make_shared<decltype(compile(f))>(compile(f));
         return [=] { return values((*program)()); };
       }},
      {"a compiled function of a view",
       [](const Tensor& p) -> Use {
         const NoGrad no_grad;
         const Tensor view = p.detach().transpose().at({slice(0, 2)});
         const auto f = [view] { return view + 1.0; };
         const auto program = std::make_shared<decltype(compile(f))>(compile(f));
         return [=] { return values((*program)()); };
       }},
      {"a product under Autocast",
       [](const Tensor& p) -> Use {
         return [=] {
           const Autocast scope(DType::bf16);
           const NoGrad no_grad;
           return values(einsum(p.to(DType::f32), p.to(DType::f32), "i j, j k -> i k"));
         };
       }},
      {"modules that share it",
       [](const Tensor& p) -> Use {
         const auto a = std::make_shared<Holding>(p), b = std::make_shared<Holding>(a->weight);
         return [=] {
           Values both = values(a->weight);
           for (const double x : values(b->state_dict().at("weight"))) both.push_back(x);
           return both;
         };
       }},
      {"a checkpoint", [](const Tensor& p) -> Use {
         return [=] {
           p.zero_grad();
           reduce(
               checkpoint([p](const Tensor& x) { return x * p.to(DType::f32); }, p.to(DType::f32)),
               "... ->", "sum")
               .backward();
           const Values gradient = values(p.grad());
           p.zero_grad();
           return gradient;
         };
       }}};
  add_steps<optim::SGD>(holders, "SGD");
  add_steps<optim::AdaGrad>(holders, "AdaGrad");
  add_steps<optim::RMSProp>(holders, "RMSProp");
  add_steps<optim::Adam>(holders, "Adam");
  add_steps<optim::AdamW>(holders, "AdamW");
  add_steps<optim::LAMB>(holders, "LAMB");
  return holders;
}

// --- writers ---

struct Writer {
  std::string name;
  std::function<void(const Tensor& p)> write;  ///< 0.5 into every element
};

std::vector<Writer> all_writers() {
  const auto halves = [](const Tensor& p) { return full(p.shape(), 0.5, p.dtype()); };
  return {{"fill", [](const Tensor& p) { p.fill(0.5); }},
          {"copy_from", [=](const Tensor& p) { p.copy_from(halves(p)); }},
          {"clamp", [](const Tensor& p) { p.copy_from(clamp(p, -0.5, 0.5)); }},
          {"views",
           [](const Tensor& p) {
             p.at({slice(0, 1)}).fill(0.5);
             p.transpose().at({every, slice(1, 4)}).fill(0.5);
           }},
          {"load_state_dict",
           [=](const Tensor& p) {
             Holding(p).load_state_dict({{"weight", full(p.shape(), 0.5)}});
           }},
          {"a compiled write", [](const Tensor& p) { compile([&] { p.copy_from(p * 0.5); })(); }},
          {"a compiled write of a view",
           [](const Tensor& p) {
             compile([&] {
               for (int i = 0; i < 4; ++i) p.at({i}).fill(0.5);
             })();
           }},
          {"another optimizer",
           [=](const Tensor& p) {
             p.set_grad(halves(p));
             optim::SGD({p}, {.learning_rate = 1}).step();
             p.zero_grad();
           }},
          {"its bytes",
           [=](const Tensor& p) { std::memcpy(p.raw_data(), halves(p).raw_data(), p.nbytes()); }}};
}

TEST(WritesReach, EveryHolderByEveryWayToWrite) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::f8e4m3}) {
    for (const Holder& holder : all_holders()) {
      const Tensor written = full({4, 4}, 0.5, dtype).requires_grad(true);
      const Values expected = holder.make(written)();
      for (const Writer& writer : all_writers()) {
        const Tensor p = ones({4, 4}, dtype).requires_grad(true);
        const Use use = holder.make(p);
        EXPECT_NE(use(), expected) << holder.name << ", " << name(dtype);
        {
          const NoGrad scope;
          writer.write(p);
        }
        EXPECT_EQ(use(), expected)
            << holder.name << " after " << writer.name << ", " << name(dtype);
      }
    }
  }
}

TEST(WritesReach, WhatTheTapeSavedIsAnErrorInstead) {
  for (const Writer& writer : all_writers()) {
    if (writer.name == "its bytes") continue;  // which nothing counts
    for (const bool is_checkpoint : {false, true}) {
      const Tensor p = ones({4, 4}).requires_grad(true);
      const auto square = [&](const Tensor& x) { return x * p; };
      const Tensor y = is_checkpoint ? checkpoint(square, p) : square(p);
      {
        const NoGrad scope;
        writer.write(p);
      }
      expect_error([&] { reduce(y, "... ->", "sum").backward(); }, ErrorKind::value,
                   {"was written to since"});
    }
  }
}

// --- a master copy keeps its digits where nobody wrote ---

Tensor parameter(const Values& start) {
  return from_vector(start).to(DType::bf16).requires_grad(true);
}
/// Steps too small for bf16 to show each.
void take_steps(optim::Optimizer& optimizer, int count) {
  for (int i = 0; i < count; ++i) {
    for (const Tensor& p : optimizer.parameters()) p.set_grad(full(p.shape(), 0.3, p.dtype()));
    optimizer.step();
  }
}
Values master(const optim::Optimizer& optimizer) {
  return values(optimizer.state_dict().at("0.master"));
}
const Values start{1, -2, 3, 0.1};

TEST(MasterCopy, KeepsItsDigitsBesideAnElementThatIsWritten) {
  const Tensor a = parameter(start), b = parameter(start);
  optim::SGD written({a}, {.learning_rate = 1e-3}), untouched({b}, {.learning_rate = 1e-3});
  take_steps(written, 5);
  take_steps(untouched, 5);
  a.detach()(1) = 0.25;
  take_steps(written, 1);
  take_steps(untouched, 1);
  const Values now = master(written), other = master(untouched);
  for (const std::size_t i : {0, 2, 3}) {
    EXPECT_EQ(now[i], other[i]);
    EXPECT_NE(now[i], values(b)[i]) << "the case has no digits to lose";
  }
  EXPECT_NEAR(now[1], 0.25 - 1e-3 * full({}, 0.3, DType::bf16).item(), 1e-7);
}

TEST(MasterCopy, KeepsItsDigitsInWhicheverOrderStateIsLoaded) {
  const Tensor a = parameter(start);
  optim::AdamW first({a}, {.learning_rate = 1e-3});
  take_steps(first, 7);
  StateDict saved;
  for (const auto& [key, tensor] : first.state_dict()) saved.emplace(key, tensor.clone());
  const Tensor weights = a.detach().clone();
  take_steps(first, 5);
  for (const bool parameters_first : {false, true}) {
    const Tensor b = parameter({0, 0, 0, 0});
    optim::AdamW resumed({b}, {.learning_rate = 1e-3});
    const NoGrad scope;
    if (parameters_first) b.copy_from(weights);
    resumed.load_state_dict(saved);
    if (!parameters_first) b.copy_from(weights);
    take_steps(resumed, 5);
    EXPECT_EQ(master(resumed), master(first));
  }
}

TEST(MasterCopy, IsWhatCompiledStepsRoundTo) {
  const Tensor p = parameter(start);
  optim::AdamW optimizer({p}, {.learning_rate = 1e-3, .weight_decay = 0.1});
  auto step = compile([&] {
    optimizer.zero_grad();
    reduce(p * p, "i ->", "sum").backward();
    optimizer.step();
  });
  const Tensor copy = optimizer.state_dict().at("0.master");
  bool has_digits = false;
  for (int i = 0; i < 20; ++i) {
    step();
    EXPECT_EQ(values(copy.to(DType::bf16)), values(p)) << i;
    has_digits |= values(copy) != values(p);
  }
  EXPECT_TRUE(has_digits);
}

// --- parameters that are elsewhere now ---

TEST(MovedParameters, AnOptimizerThatWasMadeBeforeIsAnError) {
  const Mesh mesh({{"model", 2}});
  const auto check = [](const char* what, const std::function<void(nn::Linear&)>& move) {
    nn::Linear layer(4, 4, false);
    optim::SGD optimizer(layer.parameters());
    move(layer);
    const auto step = [&] {
      reduce(layer.weight, "... ->", "sum").backward();
      optimizer.step();
    };
    SCOPED_TRACE(what);
    expect_error(step, ErrorKind::value,
                 {"SGD: parameter 0 of shape (4, 4)", "place()", "make the optimizer after"});
    layer.zero_grad();
    expect_error([&] { compile(step)(); }, ErrorKind::value, {"make the optimizer after"});
    optim::SGD after(layer.parameters());
    layer.zero_grad();
    reduce(layer.weight, "... ->", "sum").backward();
    after.step();
  };
  check("place", [&](nn::Linear& layer) {
    layer.place(mesh, [](const std::string& name, const Tensor&) {
      return std::string(name == "weight" ? "i o@model" : "");
    });
  });
  check("shard", [&](nn::Linear& layer) { layer.shard(mesh, "model"); });
}

}  // namespace
}  // namespace ein
