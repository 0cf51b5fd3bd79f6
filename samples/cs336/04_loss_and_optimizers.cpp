// Assignment 1, section 4: cross-entropy, learning rates of SGD, AdamW as the handout writes it,
// the cosine schedule, clipping.
#include <cmath>
#include <cstdio>
#include <memory>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/optim.hpp>
#include <ein/schedule.hpp>

using ein::Tensor;
namespace optim = ein::optim;

/// log Σ exp(o - max) - (o[target] - max), the mean over all positions.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets) {
  const Tensor o = logits - reduce(logits, "... v -> ... 1", "max");
  const Tensor of_target = gather(o, targets, "... [v], ... -> ...");
  return reduce(log(reduce(exp(o), "... v -> ...", "sum")) - of_target, "... ->", "mean");
}

/// The handout of 2026: α_t = α √(1 - β2^t) / (1 - β1^t); θ -= αλθ; m, v; θ -= α_t m / (√v + ε).
class HandoutRule : public optim::Rule {
 public:
  HandoutRule() : Rule("HandoutAdamW", {{"m", 0}, {"v", 0}}) {}
  std::vector<Tensor> numbers(const Tensor& rate, const Tensor& t, double decay) const override {
    return {rate * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t)), rate * decay};
  }
  std::vector<Tensor> update(const Values& of) const override {
    const Tensor decayed = of.p - of.numbers[1] * of.p;
    const Tensor m = 0.9 * of.state[0] + 0.1 * of.g, v = 0.999 * of.state[1] + 0.001 * of.g * of.g;
    return {decayed - of.numbers[0] * m / (sqrt(v) + 1e-8), m, v};
  }
};
struct HandoutAdamW : optim::Optimizer {
  explicit HandoutAdamW(const optim::ParameterGroups& parameters)
      : Optimizer(parameters, 1e-3, 0.01, std::make_unique<HandoutRule>()) {}
};

/// A weight (2, 3) after 1,000 steps towards y = (x0 + x1, -x2), as the handout's test has them.
template <class Optimizer>
Tensor trained(const Tensor& start, Optimizer make) {
  const Tensor weight = start.contiguous().to(ein::DType::f64).requires_grad(true);
  auto optimizer = make(weight);
  ein::manual_seed(3);
  for (int i = 0; i < 1000; ++i) {
    const Tensor x = ein::rand({3}, ein::DType::f64);
    const Tensor y =
        einsum(x, ein::tensor({{1.0, 1.0, 0.0}, {0.0, 0.0, -1.0}}, ein::DType::f64), "i, o i -> o");
    optimizer.zero_grad();
    const Tensor off = einsum(x, weight, "i, o i -> o") - y;
    reduce(off * off, "o ->", "sum").backward();
    optimizer.step();
  }
  return weight.detach();
}

void learning_rates_of_sgd() {
  for (const double rate : {1.0, 10.0, 100.0, 1000.0}) {
    const Tensor weight = (5 * ein::randn({10, 10}, ein::DType::f64)).requires_grad(true);
    optim::SGD optimizer({weight}, {.learning_rate = rate});
    std::printf("SGD, rate %4g:", rate);
    double first = 0;
    for (int t = 0; t < 10; ++t) {
      optimizer.zero_grad();
      const Tensor loss = reduce(weight * weight, "i j ->", "mean");
      if (t == 0) first = loss.item<double>();
      const double ratio = loss.item<double>() / first;
      std::printf(" %.6g", ratio < 1e-20 ? 0 : ratio);
      loss.backward();
      optimizer.set_learning_rate(rate / std::sqrt(t + 1.0));
      optimizer.step();
    }
    std::printf("\n");
  }
}

int main() {
  const Tensor logits = ein::tensor({{1.0, 2.0, 3.0}, {3.0, 1.0, 2.0}}),
               targets = ein::tensor({2, 1});
  const double loss = cross_entropy(logits, targets).item();
  std::printf("cross-entropy %.6f, ein's own %.6f; perplexity %.4f; of logits x 1000 %.1f\n", loss,
              ein::cross_entropy(logits, targets, "b [v], b").item(), std::exp(loss),
              cross_entropy(logits * 1000, targets).item());
  learning_rates_of_sgd();
  const Tensor start = ein::randn({2, 3});
  const auto own = [](bool before, bool last) {
    return [=](const Tensor& w) {
      return optim::AdamW({w}, {.learning_rate = 1e-3,
                                .weight_decay = 0.01,
                                .eps_before_correction = before,
                                .decay_last = last});
    };
  };
  const Tensor handout = trained(start, [](const Tensor& w) { return HandoutAdamW({w}); });
  const auto off = [&](bool before, bool last) {
    return reduce(abs(handout - trained(start, own(before, last))), "i j ->", "max").item<double>();
  };
  std::printf(
      "AdamW after 1,000 steps, off the handout's of 2026: %s\n",
      off(true, false) < 1e-12 ? "ein's, with eps before the correction, 0 to 1e-12" : "not 0");
  std::printf("  the handout's of 2025 %.1e, PyTorch's %.1e\n", off(true, true), off(false, false));
  std::printf("cosine:");
  const optim::CosineWithWarmup schedule{.learning_rate = 1,
                                         .min_learning_rate = 0.1,
                                         .warmup_steps = 7,
                                         .end = 21,
                                         .warm_up = optim::WarmUp::at_zero};
  for (int t = 0; t < 25; ++t) std::printf(" %.4f", schedule(t));
  const Tensor p = ein::ones({5, 5}).requires_grad(true);
  reduce(p, "i j ->", "sum").backward();
  const double norm = ein::clip_grad_norm(std::vector{p}, 0.01).item();
  std::printf("\ngradients of norm %g are clipped to 0.01: each becomes %.6f\n", norm,
              p.grad().at({0, 0}).item());
}
