// Compiled functions against the same calls made one by one.
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/memory.hpp>
#include <ein/optim.hpp>
#include "support/expect_error.hpp"

namespace ein {
namespace {

Tensor numbers(const Shape& shape, double scale) { return (randn(shape) * scale).detach(); }

/// Two layers, AdamW: the losses of some steps.
template <class Run>
std::vector<double> losses(int steps, Run&& run) {
  manual_seed(3);
  const Tensor w1 = numbers({8, 16}, 0.3).requires_grad(true),
               w2 = numbers({16, 1}, 0.3).requires_grad(true);
  optim::AdamW optimizer({w1, w2}, {.learning_rate = 0.01});
  const Tensor x = randn({32, 8}), y = reduce(x, "b d -> b 1", "sum");
  const auto step = [&](const Tensor& a, const Tensor& b) {
    optimizer.zero_grad();
    const Tensor h = dropout(gelu(einsum(a, w1, "b d, d h -> b h")), 0.25);
    const Tensor loss = mse_loss(einsum(h, w2, "b h, h o -> b o"), b);
    loss.backward();
    clip_grad_norm(optimizer.parameters(), 1);
    optimizer.step();
    return loss;
  };
  return run(step, x, y, steps);
}

std::vector<double> eager_losses(int steps) {
  return losses(steps, [](const auto& step, const Tensor& x, const Tensor& y, int n) {
    std::vector<double> found;
    for (int i = 0; i < n; ++i) found.push_back(step(x, y).item());
    return found;
  });
}
std::vector<double> compiled_losses(int steps) {
  return losses(steps, [](const auto& step, const Tensor& x, const Tensor& y, int n) {
    auto compiled = compile(step);
    std::vector<double> found;
    for (int i = 0; i < n; ++i) found.push_back(compiled(x, y).item());
    return found;
  });
}

TEST(Compile, TrainingAgreesWithEagerAndWithItself) {
  const std::vector<double> eager = eager_losses(12), compiled = compiled_losses(12);
  for (std::size_t i = 0; i < eager.size(); ++i)
    EXPECT_NEAR(compiled[i], eager[i], 1e-5 * eager[i]) << "step " << i;
  EXPECT_LT(eager.back(), eager.front());
  EXPECT_EQ(compiled, compiled_losses(12));  // the same seed, the same bits; dropout included
}

TEST(Compile, KeepsTheProgramsThatWereUsedLast) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    return x + 1.0;
  });
  for (std::int64_t n = 1; n <= 16; ++n) f(zeros({n}));
  EXPECT_EQ(traces, 16);
  f(zeros({1}));  // used again: the program of size 2 is the oldest now
  EXPECT_EQ(traces, 16);
  f(zeros({17}));
  f(zeros({1}));
  EXPECT_EQ(traces, 17);
  f(zeros({2}));
  EXPECT_EQ(traces, 18);
  EXPECT_EQ(f(zeros({2})).to_vector<float>(), std::vector<float>(2, 1));
}

TEST(Compile, RunsAllocateNothingButResultsThatAreHeld) {
  auto f =
      compile([](const Tensor& x) { return softmax(einsum(x, x, "i k, j k -> i j"), "i [j]"); });
  const Tensor x = randn({64, 32});
  Tensor y = f(x);
  const std::size_t before = memory_allocated();
  y = Tensor();
  reset_max_memory_allocated();
  for (int i = 0; i < 3; ++i) f(x);
  EXPECT_LE(max_memory_allocated(), before);
}

TEST(Compile, AHeldResultKeepsItsElements) {
  auto f = compile([](const Tensor& x) { return x * 2; });
  const Tensor first = f(ones({4})), second = f(full({4}, 3));
  EXPECT_EQ(first.to_vector<float>(), std::vector<float>(4, 2));
  EXPECT_EQ(second.to_vector<float>(), std::vector<float>(4, 6));
}

TEST(Compile, AConstantIsReducedOverAFewPoints) {
  auto f = compile([](const Tensor& x) {
    return x + reduce(full({3, 7}, 2.0), "a b -> b", "mean");
  });
  EXPECT_EQ(f(zeros({7})).to_vector<float>(), std::vector<float>(7, 2));
}

/// The operand that a sum reads first may be a small one, which stands still where the large ones
/// move.
TEST(Compile, ASumReadsASmallOperandFirst) {
  const auto expect_same = [](const auto& f, const Tensor& small, const Tensor& large,
                              const Tensor& other) {
    auto compiled = compile(f);
    const Tensor here = f(small, large, other), there = compiled(small, large, other);
    ASSERT_EQ(there.shape(), here.shape());
    const std::vector<double> want = here.template to_vector<double>(),
                              got = there.template to_vector<double>();
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-9) << i;
  };
  const DType f64 = DType::f64;
  expect_same([](const Tensor& a, const Tensor& x,
                 const Tensor& y) { return reduce((a - x) / y, "a b c -> a c", "sum"); },
              randn({33, 1, 1}, f64), randn({33, 33, 31}, f64), full({33, 1, 31}, 2, f64));
  for (const char* pattern : {"a b -> a", "a b -> b", "a b ->"}) {
    const auto f = [&](const Tensor& a, const Tensor& x, const Tensor& y) {
      return reduce((a - x) - y, runtime(pattern), "sum");
    };
    expect_same(f, randn({256, 1}, f64), randn({256, 256}, f64), randn({256}, f64));
    expect_same(f, randn({256}, f64), randn({256, 256}, f64).transpose(), randn({256, 1}, f64));
    expect_same(f, randn({256}, f64), randn({256, 256}, f64), randn({256, 256}, f64).transpose());
    expect_same(f, randn({256, 1}, f64), randn({256, 256}, f64).transpose(),
                randn({256, 256}, f64));
  }
  // Large operands, each of which lacks an axis of the other.
  expect_same([](const Tensor& a, const Tensor& x,
                 const Tensor& y) { return reduce((a - x) - y, "a b c -> b", "sum"); },
              randn({192, 192, 1}, f64), randn({192, 17}, f64),
              randn({192}, f64).view({192, 1, 1}));
  expect_same([](const Tensor& a, const Tensor& x,
                 const Tensor& y) { return reduce((a - x) - y, "a b c -> a c", "max"); },
              randn({200, 200}, f64).transpose().view({200, 200, 1}), randn({200, 200}, f64),
              randn({200, 1, 1}, f64));
}

TEST(Compile, EqualOperationsAreComputedOnce) {
  auto f = compile([](const Tensor& x) { return exp(x) + exp(x); });
  f(ones({8}));
  EXPECT_EQ(f.cost().count(ScalarOp::exp), Count(8));
}

TEST(Compile, StateIsReadAnewAndAssigned) {
  const Tensor counter = zeros({}), other = ones({});
  auto f = compile([&](const Tensor& x) {
    const Tensor before = counter + x;
    // Exchanged: neither sees the other's new value.
    const Tensor swapped = other + 0;
    other.copy_from(counter);
    counter.copy_from(swapped);
    return before;
  });
  EXPECT_EQ(f(zeros({})).item(), 0);
  EXPECT_EQ(counter.item(), 1);
  EXPECT_EQ(other.item(), 0);
  counter.fill(5);
  EXPECT_EQ(f(ones({})).item(), 6);
  EXPECT_EQ(other.item(), 5);
  EXPECT_EQ(f.graph().assignments.size(), 2u);
}

// Views that were made outside: the function knows them as tensors of their own.
TEST(Compile, ViewsOfOneTensorFromOutsideReadWhatWasThere) {
  constexpr std::int64_t rows = 4096, columns = 64;
  for (const auto& [to, from] : {std::pair(0, 16), {16, 0}, {1, 0}, {0, 1}}) {
    for (const bool moves : {true, false}) {
      const Tensor state = arange(rows * columns).to(DType::f32).view({rows, columns});
      const Tensor before = state.clone();
      const auto part = [](const Tensor& x, std::int64_t first) {
        return x.at({slice(first, first + rows - 16)});
      };
      const Tensor target = part(state, to), source = part(state, from);
      auto f = compile([&](const Tensor& x) {
        const Tensor moved = source + x;
        const Tensor sums = reduce(moved, "r c -> r", Reduction::sum);
        target.copy_from(moves ? moved : target * 2 + x);
        return sums;
      });
      const Tensor sums = f(ones({}));
      const std::vector<double> was = before.to_vector<double>(), is = state.to_vector<double>(),
                                found = sums.to_vector<double>();
      std::int64_t wrong_elements = 0, wrong_sums = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t row = r - to;
        const bool is_written = row >= 0 && row < rows - 16;
        double sum = 0;
        for (std::int64_t c = 0; c < columns; ++c) {
          const auto at = static_cast<std::size_t>(r * columns + c),
                     read = static_cast<std::size_t>((is_written ? from + row : 0) * columns + c);
          const double wanted = !is_written ? was[at] : moves ? was[read] + 1 : was[at] * 2 + 1;
          wrong_elements += is[at] != wanted;
          sum += was[read] + 1;
        }
        if (is_written)
          wrong_sums += std::abs(found[static_cast<std::size_t>(row)] - sum) > 1e-6 * sum;
      }
      EXPECT_EQ(wrong_elements, 0) << to << " " << from << " " << moves << f.text();
      EXPECT_EQ(wrong_sums, 0) << to << " " << from << " " << moves << f.text();
    }
  }
}

TEST(Compile, RowsReadSeveralViewsOfOneTensorFromOutside) {
  constexpr std::int64_t rows = 600, columns = 500;
  const Tensor both = zeros({2, columns}), x = randn({rows, columns});
  both.at({0}).fill(2);
  both.at({1}).fill(3);
  const Tensor weight = both.at({0}), bias = both.at({1});
  auto f = compile([&](const Tensor& a) { return layer_norm(a, weight, bias, "r [c]"); });
  const std::vector<double> given = x.to_vector<double>(), found = f(x).to_vector<double>();
  for (std::size_t r = 0; r < rows; ++r) {
    const double* const row = given.data() + r * columns;
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < columns; ++c) mean += row[c] / columns;
    for (std::size_t c = 0; c < columns; ++c) variance += (row[c] - mean) * (row[c] - mean);
    const double scale = 2 / std::sqrt(variance / columns + 1e-5);
    for (std::size_t c = 0; c < columns; ++c)
      ASSERT_NEAR(found[r * columns + c], (row[c] - mean) * scale + 3, 1e-4) << f.text();
  }
}

TEST(Compile, EqualGathersHaveErrorsOfTheirOwn) {
  const Tensor x = randn({300, 7}), inside = zeros({300}, DType::i64),
               outside = full({300}, 9, DType::i64);
  const auto expect_errors = [&](auto f) {
    auto compiled = compile(f);
    test::expect_error([&] { compiled(x, inside, outside); }, ErrorKind::value,
                       {"gather: position 9"});
    test::expect_error([&] { compiled(x, outside, inside); }, ErrorKind::value,
                       {"cross_entropy: target 9"});
  };
  const auto gathered = [](const Tensor& a, const Tensor& at) {
    return gather(a, at, "r [v], r -> r");
  };
  const auto loss = [](const Tensor& a, const Tensor& targets) {
    return cross_entropy(a, targets, "r [v], r -> r");
  };
  expect_errors([&](const Tensor& a, const Tensor& targets, const Tensor& at) {
    return std::vector<Tensor>{gathered(a, at), loss(a, targets)};
  });
  expect_errors([&](const Tensor& a, const Tensor& targets, const Tensor& at) {
    return std::vector<Tensor>{loss(a, targets), gathered(a, at)};
  });
}

TEST(Compile, ASignatureIsTracedOnce) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    return x + 1;
  });
  f(ones({2}));
  f(ones({2}));
  EXPECT_EQ(traces, 1);
  f(ones({3}));
  EXPECT_EQ(traces, 2);
}

TEST(Compile, RefusesWhatATraceCannotKnow) {
  auto f = compile([](const Tensor& x) { return x * x.item(); });
  EXPECT_THROW(f(ones({})), Error);
  EXPECT_THROW(compile([](const Tensor& x) { return x; }).graph(), Error);
  auto g = compile([](const Tensor& x) { return x + 1; });
  EXPECT_THROW(g(ones({2}).requires_grad(true)), Error);
}

TEST(Compile, WhatIsKeptOfATraceHasNoElements) {
  Tensor kept;
  auto f = compile([&](const Tensor& x) {
    kept = x * 2;
    return x;
  });
  f(ones({3, 2}));
  const auto refuses = [](const auto& look) {
    try {
      look();
      ADD_FAILURE() << "no Error";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("ein::compile, ein::map or ein::vmap traces"), std::string::npos) << what;
      EXPECT_NE(what.find("(3, 2)"), std::string::npos) << what;
      EXPECT_NE(what.find("help: "), std::string::npos) << what;
    }
  };
  refuses([&] { to_string(kept); });
  refuses([&] { kept(1); });
  refuses([&] { kept.transpose(); });
  refuses([&] { kept.view({6}); });
  refuses([&] { kept(1, 1).item(); });
}

TEST(Compile, ValuesShareMemory) {
  auto f = compile([](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 6; ++i) y = einsum(y, y, "i j, j k -> i k");
    return y;
  });
  f(eye(32));
  EXPECT_LE(f.memory().arena, 2u * 32 * 32 * 4);
  EXPECT_EQ(f.memory().unshared, 5u * 32 * 32 * 4);
}

TEST(Compile, AutocastIsPartOfTheSignature) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    return einsum(x, x, "i k, j k -> i j");
  });
  const Tensor x = full({2, 2}, 1.001);
  EXPECT_EQ(f(x).dtype(), DType::f32);
  {
    const Autocast bf16(DType::bf16);
    EXPECT_EQ(f(x).dtype(), DType::bf16);
    const Autocast f16(DType::f16);
    EXPECT_EQ(f(x).dtype(), DType::f16);
    const Autocast off(DType::f32);
    EXPECT_EQ(f(x).dtype(), DType::f32);
  }
  EXPECT_EQ(f(x).dtype(), DType::f32);
  EXPECT_EQ(traces, 3);
}

// --- the bill ---

TEST(Compile, BillOfATrainingStep) {
  // x·w1·w2·w3 in f32: 8 rows, 4 -> 16 -> 16 -> 2.
  const Tensor w1 = numbers({4, 16}, 0.3).requires_grad(true),
               w2 = numbers({16, 16}, 0.3).requires_grad(true);
  const Tensor w3 = numbers({16, 2}, 0.3).requires_grad(true);
  const Tensor offset = ones({2});
  optim::Adam optimizer({w1, w2, w3}, {.learning_rate = 0.01});
  const auto make = [&](bool checkpointed) {
    return compile([&, checkpointed](const Tensor& x, const Tensor& y) {
      optimizer.zero_grad();
      const auto hidden = [&](const Tensor& a) {
        return einsum(einsum(a, w1, "b d, d h -> b h"), w2, "b h, h g -> b g");
      };
      const Tensor h = checkpointed ? checkpoint(hidden, x) : hidden(x);
      const Tensor loss = mse_loss(einsum(h, w3, "b h, h o -> b o") + offset, y);
      loss.backward();
      const Tensor norm = clip_grad_norm(optimizer.parameters(), 1);
      optimizer.step();
      return std::vector<Tensor>{loss, norm};
    });
  };
  const Tensor x = randn({8, 4}), y = randn({8, 2});
  auto step = make(false);
  step.prepare(x, y);
  const StepBill& bill = step.bill();
  const Count first = 2 * 8 * 4 * 16, second = 2 * 8 * 16 * 16,
              third = 2 * 8 * 16 * 2;  // FLOPs of the products
  EXPECT_EQ(bill.forward.matmul_only, first + second + third);
  EXPECT_EQ(bill.backward.matmul_only, first + 2 * second + 2 * third);  // x needs no gradient
  EXPECT_EQ(bill.recompute, Cost{});
  // A square root for every number, for the norm of each of three gradients, and for Adam's bias
  // correction.
  constexpr int numbers_of_model = 64 + 256 + 32;
  EXPECT_EQ(bill.update.matmul_only, Count(0));
  EXPECT_EQ(bill.update.count(ScalarOp::sqrt), Count(numbers_of_model + 4));
  EXPECT_EQ(bill.forward.count(ScalarOp::sqrt) + bill.backward.count(ScalarOp::sqrt), Count(0));
  EXPECT_EQ(bill.total(), step.cost());

  EXPECT_EQ(bill.parameters, 4u * numbers_of_model);
  EXPECT_EQ(bill.gradients, 4u * numbers_of_model);
  EXPECT_GE(bill.optimizer_state, 8u * numbers_of_model);
  EXPECT_LE(bill.optimizer_state, 8u * numbers_of_model + 8);  // and how many steps there were
  EXPECT_GE(bill.constants, 2u * 4);
  EXPECT_EQ(bill.parameters + bill.optimizer_state + bill.constants, step.memory().state);
  // What the products read, and the 8 × 2 that the loss compares.
  EXPECT_EQ(bill.activations, 2u * 8 * 16 * 4 + 8 * 2 * 4);
  ASSERT_EQ(bill.kept.size(), 3u);
  const auto expect_kept = [&](std::size_t i, const char* axes, const Shape& shape) {
    EXPECT_EQ(bill.kept[i].axes, axes);
    EXPECT_EQ(bill.kept[i].shape, shape);
    EXPECT_EQ(bill.kept[i].dtype, DType::f32);
    EXPECT_EQ(bill.kept[i].bytes, 4u * static_cast<std::size_t>(checked_numel(shape, 1)));
  };
  expect_kept(0, "b h", {8, 16});
  expect_kept(1, "b g", {8, 16});
  EXPECT_EQ(bill.kept[0].operation, "contract");
  EXPECT_EQ(bill.kept[2].shape, (Shape{8, 2}));
  EXPECT_EQ(to_string(bill.kept).substr(0, to_string(bill.kept).find('\n')),
            "512  b h  f32 (8, 16)  contract");

  auto less = make(true);
  less.prepare(x, y);
  EXPECT_EQ(less.bill().forward.matmul_only, bill.forward.matmul_only);
  EXPECT_EQ(less.bill().recompute.matmul_only,
            first);  // the second product's result is kept, the third reads it
  EXPECT_EQ(less.bill().backward.matmul_only, bill.backward.matmul_only);
  EXPECT_EQ(less.bill().activations, bill.activations - 8 * 16 * 4);
  EXPECT_EQ(less.bill().total(), less.cost());

  const std::string text = to_string(less.bill());
  EXPECT_NE(text.find("recomputation:   "), std::string::npos) << text;
  EXPECT_NE(text.find("gradients:        1408 bytes\n"), std::string::npos) << text;
}

TEST(Compile, BillOfWhatHasNoBackwardPass) {
  const Tensor total = zeros({4});
  auto f = compile([&](const Tensor& x) {
    const Tensor y = exp(x);
    total.copy_from(total + y * 2);
    return y;
  });
  f(ones({4}));
  EXPECT_EQ(f.bill().forward.count(ScalarOp::exp), Count(4));
  EXPECT_EQ(f.bill().update.model, Count(8));
  EXPECT_EQ(f.bill().backward, Cost{});
  EXPECT_EQ(f.bill().optimizer_state, 16u);
  EXPECT_EQ(f.bill().activations + f.bill().gradients + f.bill().parameters, 0u);
}

TEST(Compile, AGradientInTheLossIsPartOfTheForwardPass) {
  const Tensor w = full({4}, 0.5).requires_grad(true);
  auto f = compile([&](const Tensor& x) {
    w.zero_grad();
    const Tensor y = reduce(exp(einsum(w, x, "i, i j -> j")), "j ->", Reduction::sum);
    const Tensor slope = gradients(y, {&w, 1}, true).front();
    reduce(tanh(slope), "i ->", Reduction::sum).backward();
    const NoGrad no_grad;
    w.copy_from(w - log(w.grad()));
    return y;
  });
  f.prepare(ones({4, 4}));
  EXPECT_EQ(f.bill().update.count(ScalarOp::log), Count(4));
  EXPECT_EQ(f.bill().forward.count(ScalarOp::tanh) + f.bill().backward.count(ScalarOp::tanh),
            Count(4));
  EXPECT_EQ(f.bill().update.count(ScalarOp::tanh), Count(0));
}

// Maps whose indices were taken into others, which are then taken into a third: of an axis of size
// 1 an index is not that of the reader.
TEST(Compile, MapsWithIndicesAreFusedOnlyWhereTheyFit) {
  const auto slope = [](const Tensor& x) {
    const Tensor a = x.detach();
    a.requires_grad(true);
    const Tensor e = reduce(a, "b d -> b 1", "mean");
    const Tensor l = reduce(tril(e, "[b c]") * e, "b c ->", "sum");
    const std::vector<Tensor> inputs{a};
    return gradients(l, std::span<const Tensor>(inputs))[0];
  };
  const Tensor x = arange(4.0).view({2, 2});
  auto compiled = compile(slope);
  EXPECT_EQ(compiled(x).to_vector<double>(), slope(x).to_vector<double>());
}

/// An integer that was a float on its way is rounded as that float, also where nothing else happens
/// to it.
TEST(Compile, IntegersThatWereFloats) {
  const auto expect_as_eager = [](DType dtype, DType by, std::int64_t value, std::int64_t want) {
    const Tensor x = full({3}, value, DType::i64).to(dtype);
    const auto f = [&](const Tensor& y) { return y.to(by).to(dtype); };
    auto compiled = compile(f);
    for (const Tensor& got : {f(x), compiled(x)})
      EXPECT_EQ(got[0].item<std::int64_t>(), want) << name(dtype) << ' ' << name(by);
    const Tensor state = x.clone();
    compile([&](const Tensor& y) { state.copy_from(state.to(by).to(dtype) + (y - y)); })(x);
    EXPECT_EQ(state[0].item<std::int64_t>(), want) << name(dtype) << ' ' << name(by);
    compile([&] { state.copy_from(state.to(by).to(dtype)); })();
    EXPECT_EQ(state[0].item<std::int64_t>(), want) << name(dtype) << ' ' << name(by);
  };
  expect_as_eager(DType::i32, DType::f32, 16777217, 16777216);
  expect_as_eager(DType::i64, DType::f64, 9007199254740993, 9007199254740992);
  expect_as_eager(DType::i64, DType::f32, 16777217, 16777216);
  expect_as_eager(DType::i32, DType::f64, 16777217, 16777217);
  expect_as_eager(DType::i16, DType::f32, -32767, -32767);
  expect_as_eager(DType::i16, DType::bf16, 257, 256);
}

/// As the language rounds them, in vectors and at their ends: in f64 on the way some would be
/// rounded twice.
TEST(Compile, IntegersBecomeFloatsRoundedOnce) {
  const auto expect_rounded_once = []<class Integer>(Integer) {
    std::vector<Integer> values;
    for (int bit = 53; bit < 63; ++bit) {
      const Integer one = 1, half = one << (bit - 24);
      for (const Integer end : {half - one, half, half + one, 3 * half - one, 3 * half + one})
        values.push_back((one << bit) + end);
    }
    values.push_back(std::numeric_limits<Integer>::max());
    values.push_back(std::numeric_limits<Integer>::min());
    const Tensor x = from_vector(values);
    using Function = Tensor (*)(const Tensor&);
    const Function to_f32 = [](const Tensor& y) { return y.to(DType::f32); };
    const Function flipped = [](const Tensor& y) { return flip(y, "[n]").to(DType::f32); };
    const Function doubled = [](const Tensor& y) { return y.to(DType::f32) * 2; };
    for (const Function f : {to_f32, flipped, doubled})
      EXPECT_EQ(compile(f)(x).to_vector<double>(), f(x).to_vector<double>());
    const std::vector<double> got = compile(to_f32)(x).to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(got[i], static_cast<float>(values[i])) << values[i];
  };
  expect_rounded_once(std::int64_t{});
  expect_rounded_once(std::uint64_t{});
}

}  // namespace
}  // namespace ein
