// Assignment 2, section 1: what sums in 16 bits lose, which values of a model are in 16 bits under
// autocast, and the time of a step in f32 and bf16.
#include <chrono>
#include <cstdio>
#include <string>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>

namespace nn = ein::nn;
using ein::DType;
using ein::Tensor;

/// A sum of `sum` to which 0.01 of `term`, first converted to `cast`, is added 1,000 times.
double added(DType sum, DType term, DType cast) {
  Tensor s = ein::zeros({}, sum);
  const Tensor hundredth = ein::full({}, 0.01, term).to(cast);
  for (int i = 0; i < 1000; ++i) s = (s + hundredth).to(sum);
  return s.item();
}

struct Toy : nn::Layer {
  nn::Linear fc1{8, 10, false}, fc2{10, 4, false};
  nn::LayerNorm ln{10};
  EIN_MODULES(fc1, ln, fc2);
  Tensor forward(const Tensor& x) const override { return fc2(ln(ein::relu(fc1(x)))); }
};

void dtypes() {
  const Toy toy;
  const Tensor x = ein::randn({16, 8}), targets = ein::zeros({16}, DType::i64);
  const ein::Autocast scope(DType::f16);
  const Tensor first = toy.fc1(x), normed = toy.ln(ein::relu(first)), logits = toy.fc2(normed);
  const Tensor loss = ein::cross_entropy(logits, targets, "b [v], b");
  loss.backward();
  const auto line = [](const char* what, const Tensor& t) {
    std::printf("%-24s %s\n", what, std::string(ein::name(t.dtype())).c_str());
  };
  line("parameters", toy.fc1.weight);
  line("first linear layer", first);
  line("layer norm", normed);
  line("logits", logits);
  line("loss", loss);
  line("gradients", toy.fc1.weight.grad());
}

void step_in(DType dtype) {
  ein::manual_seed(0);
  const nn::Decoder model(
      nn::cs336({.vocabulary = 1000, .context = 128, .width = 128, .layers = 2, .heads = 4}));
  ein::optim::AdamW optimizer(model.parameters());
  const Tensor x = ein::arange(512).view({4, 128});
  auto step = ein::compile([&] {
    optimizer.zero_grad();
    Tensor loss;
    {
      const ein::Autocast scope(dtype);
      loss = ein::cross_entropy(model(x), x + 1, "b s [v], b s");
    }
    loss.backward();
    optimizer.step();
    return loss;
  });
  for (int i = 0; i < 5; ++i) step();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) step();
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count() /
      10;
  std::printf("step in %s: %.2f ms, %.1f MB kept for the backward pass\n",
              std::string(ein::name(dtype)).c_str(), ms,
              static_cast<double>(step.bill().activations) / 1e6);
}

int main() {
  std::printf("f32 + f32            %.7f\n", added(DType::f32, DType::f32, DType::f32));
  std::printf("f16 + f16            %.6f\n", added(DType::f16, DType::f16, DType::f16));
  std::printf("f32 + f16            %.6f\n", added(DType::f32, DType::f16, DType::f16));
  std::printf("f32 + f32 of f16     %.6f\n", added(DType::f32, DType::f16, DType::f32));
  std::printf("0.01 in f16          %.17f\n", ein::full({}, 0.01, DType::f16).item<double>());
  dtypes();
  step_in(DType::f32);
  step_in(DType::bf16);
}
