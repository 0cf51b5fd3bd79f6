// Compiled functions for any length on a GPU: kernels take the sizes as arguments.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include "support/attention_step.hpp"
#include "support/fake_counts.hpp"
#include "support/functions_of_lengths.hpp"

namespace ein {
namespace {

using namespace literals;

/// What calls with some lengths did on the GPU.
struct Calls {
  int traces = 0, modules = 0;  // modules that the driver's stand-in loaded
  std::set<std::string> plans;
};

/// Calls f on the GPU for each shape, beside what is compiled for that shape alone on the host.
Calls compare(const std::function<Tensor(const Tensor&)>& f, std::string_view type,
              const std::vector<Shape>& shapes, DType dtype = DType::f32, double tolerance = 1e-5) {
  Calls calls;
  auto there = compile(
      [&](const Tensor& x) {
        ++calls.traces;
        return f(x);
      },
      {type});
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.to_string());
    const Tensor x = randn(shape).to(dtype), moved = x.to(cuda);
    const int before = test::fake_count("modules");
    const Tensor got = there(moved);
    calls.modules += test::fake_count("modules") - before;
    calls.plans.insert(there.text());
    const auto size = [&](int axis) { return to_string(shape[axis]); };
    auto here = compile(f, {"b=" + size(0) + " s=" + size(1) + " c=" + size(2)});
    EXPECT_TRUE(all_close(got.to(cpu), here(x), tolerance, tolerance)) << there.text();
  }
  return calls;
}

std::vector<Shape> shapes_of(std::initializer_list<std::int64_t> lengths, std::int64_t c) {
  std::vector<Shape> shapes;
  for (std::int64_t s : lengths) shapes.push_back({2, s, c});
  return shapes;
}

TEST(LengthsOnDevice, EveryOperation) {
  for (const auto& [name, function] : test::functions_of_lengths()) {
    SCOPED_TRACE(name);
    // Of these, some are multiples of 2 or 4 when halved or multiplied: up to three plans, which
    // mostly have the same kernels.
    const Calls calls = compare(function, "b s c=3", shapes_of({37, 41, 45, 63, 55}, 3));
    EXPECT_EQ(calls.traces, 1);
    EXPECT_LE(calls.plans.size(), 3u);
    EXPECT_LE(calls.modules, 2);
  }
}

TEST(LengthsOnDevice, Rows) {
  const auto scores = [](const Tensor& x) {
    return softmax(einsum(x, x, "b s c, b t c -> b s t") * 0.125, "b s [t]");
  };
  const Calls calls = compare(scores, "b s c=16", shapes_of({68, 72, 100, 120, 128}, 16));
  EXPECT_EQ(calls.traces, 1);
  EXPECT_LE(calls.plans.size(), 2u);
  // From the shortest to long ones that are summed in pieces.
  compare([](const Tensor& x) { return reduce(x, "b s c -> b", "sum"); }, "b s c=1",
          shapes_of({1, 2, 100, 1001, 70000, 70001}, 1), DType::f32, 1e-3);
  compare([](const Tensor& x) { return layer_norm(x, "b [s] c"); }, "b s c=1",
          shapes_of({2, 30, 700, 5000}, 1), DType::f32, 1e-4);
}

TEST(LengthsOnDevice, Products) {
  const Tensor w = randn({96, 64}), there = w.to(cuda);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const auto product = [&](const Tensor& x) {
      return gelu(einsum(x, (x.device() == cpu ? w : there).to(dtype), "b s c, d c -> b s d"));
    };
    const Calls calls = compare(product, "b s c=64", shapes_of({40, 43, 56, 63}, 64), dtype,
                                dtype == DType::bf16 ? 0.1 : 1e-4);
    EXPECT_EQ(calls.traces, 1);
    EXPECT_LE(calls.plans.size(), 2u);
  }
  // Summed over the open axis, in pieces; and tiles that are brought by tensor maps.
  compare([](const Tensor& x) { return einsum(x, x, "b s c, b s d -> c d"); }, "b s c=64",
          shapes_of({512, 768, 1000}, 64), DType::f32, 1e-3);
  const auto squares = [](const Tensor& x) { return einsum(x, x, "b s c, b t c -> b s t"); };
  compare(squares, "b s c=128", shapes_of({264, 280, 392}, 128), DType::bf16, 0.3);
}

TEST(LengthsOnDevice, TunedProducts) {
  tune(true);
  compare([](const Tensor& x) { return einsum(x, x, "b s c, b t c -> b s t"); }, "b s c=32",
          shapes_of({140, 136, 152}, 32), DType::bf16, 0.1);
  tune(false);
}

using Step = Compiled<std::function<std::vector<Tensor>(const Tensor&, const Tensor&)>>;

/// Runs a step, made for a device, on batches of several lengths on both. Returns the GPU's plans.
std::set<std::string> compare_steps(const std::function<Step(Device)>& made,
                                    const std::vector<std::vector<Tensor>>& batches,
                                    double tolerance) {
  manual_seed(5);
  Step here = made(cpu);
  manual_seed(5);
  Step there = made(cuda);
  std::set<std::string> plans;
  for (const std::vector<Tensor>& batch : batches) {
    SCOPED_TRACE(batch[0].shape().to_string());
    const std::vector<Tensor> want = here(batch[0], batch[1]),
                              got = there(batch[0].to(cuda), batch[1].to(cuda));
    EXPECT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double scale = reduce(abs(want[i]), "... -> ", Reduction::max).item<float>();
      EXPECT_TRUE(all_close(got[i].to(cpu), want[i], 0, scale * tolerance)) << i;
    }
    plans.insert(there.text());
  }
  return plans;
}

TEST(LengthsOnDevice, AttentionAndItsGradients) {
  for (const auto autocast : {std::optional<DType>(), std::optional(DType::bf16)}) {
    const auto made = [&](Device device) {
      const auto layer = std::make_shared<nn::Attention>(64, 2);
      layer->to(device);
      return Step(
          [layer, autocast](const Tensor& x, const Tensor& y) {
            return test::attention_step(*layer, x, y, autocast);
          },
          {"b s c=64", "b s c=64"});
    };
    std::vector<std::vector<Tensor>> batches;
    for (std::int64_t s : {40, 44, 60, 57})
      batches.push_back({randn({2, s, 64}), randn({2, s, 64})});
    const std::set<std::string> plans = compare_steps(made, batches, autocast ? 0.03 : 1e-4);
    EXPECT_LE(plans.size(), 3u);
    for (const std::string& plan : plans)
      EXPECT_NE(plan.find("as the gradients of attention"), std::string::npos) << plan;
  }
}

TEST(LengthsOnDevice, TrainingSteps) {
  struct Training {
    nn::Transformer model{
        {.vocab_size = 13, .block_size = 64, .n_layer = 2, .n_head = 2, .n_embd = 16}};
    std::optional<optim::AdamW> optimizer;
  };
  const auto made = [](Device device) {
    const auto training = std::make_shared<Training>();
    training->model.to(device);
    training->optimizer.emplace(training->model.parameters(),
                                optim::AdamOptions{.learning_rate = 0.02, .eps = 1e-2});
    return Step(
        [training](const Tensor& x, const Tensor& y) -> std::vector<Tensor> {
          training->optimizer->zero_grad();
          const Tensor loss = cross_entropy(training->model(x), y, "b s [v], b s");
          loss.backward();
          const Tensor norm = clip_grad_norm(training->optimizer->parameters(), 0.5);
          training->optimizer->step();
          return {loss.detach(), norm};
        },
        {"b s", "b s"});
  };
  std::vector<std::vector<Tensor>> batches;
  for (const auto& [b, s] : {std::pair(3, 24), {3, 28}, {4, 20}, {3, 25}, {5, 24}}) {
    const auto tokens = [&, b = b, s = s] { return (rand({b, s}) * 13).to(DType::i64); };
    batches.push_back({tokens(), tokens()});
  }
  EXPECT_LE(compare_steps(made, batches, 1e-4).size(), 4u);
}

TEST(LengthsOnDevice, DecodesWithACacheThatGrows) {
  constexpr std::int64_t most = 24;
  manual_seed(4);
  nn::Transformer model(
      {.vocab_size = 11, .block_size = most, .n_layer = 1, .n_head = 2, .n_embd = 16});
  const NoGrad no_grad;
  const Tensor text = (rand({most}) * 11).to(DType::i64);
  const Tensor want = model(text.view({1, most}));
  model.to(cuda);
  const std::vector<nn::KVCache> kept = model.make_cache();
  int traces = 0;
  auto next_logits = compile(
      [&](const Tensor& before, const Tensor& tokens) {
        ++traces;
        std::vector<nn::KVCache> cache = kept;
        for (nn::KVCache& block : cache) block.length = size_of(before, "p");
        return model.next_logits(tokens, cache);
      },
      {"p", "b=1 n"});
  const Tensor there = text.to(cuda);
  std::set<std::string> plans;
  for (std::int64_t p = 0, n = 5; p < most; p += n, n = 1) {
    const Tensor logits =
        next_logits(there.at({slice(0, p)}), there.at({slice(p, p + n)}).view({1, n}));
    EXPECT_TRUE(all_close(logits.to(cpu).view({11}), want.at({0, p + n - 1}), 1e-4, 1e-4)) << p;
    plans.insert(next_logits.text());
  }
  EXPECT_LE(traces, 4);  // for no tokens before, for 1 token, and for a full cache
  // Rows of 16 bytes or not, times a few ranges; and tokens that begin at an odd place.
  EXPECT_LE(plans.size(), 12u);
}

TEST(LengthsOnDevice, ManyLengthsOfOnePlan) {
  auto there = compile([](const Tensor& x) { return softmax(x * 2, "b [s]"); }, {"b s"});
  const Tensor whole = randn({3, 256});
  there(whole.to(cuda));
  const int modules = test::fake_count("modules");
  for (std::int64_t s = 132; s <= 256; s += 4) {
    const Tensor x = whole.at({every, slice(0, s)}).clone();
    EXPECT_TRUE(all_close(there(x.to(cuda)).to(cpu), softmax(x * 2, "b [s]"), 1e-6, 1e-6)) << s;
  }
  EXPECT_EQ(test::fake_count("modules"), modules);
}

}  // namespace
}  // namespace ein
