// A residual network on images: convolutions and pools are patterns.
#include <cstdio>
#include <string>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>

namespace nn = ein::nn;
using namespace ein::literals;

/// Two convolutions, whose result is added to what they are of.
struct Block : nn::Layer {
  nn::EinMix first{"b {y + ky - 1} {x + kx - 1} c -> b y x o",
                   "ky kx c o",
                   "o",
                   "ky"_a = 3,
                   "kx"_a = 3,
                   "c"_a = 16,
                   "o"_a = 16},
      second{"b {y + ky - 1} {x + kx - 1} c -> b y x o",
             "ky kx c o",
             "o",
             "ky"_a = 3,
             "kx"_a = 3,
             "c"_a = 16,
             "o"_a = 16};
  Block() {
    add_module("first", first);
    add_module("second", second);
  }
  ein::Tensor forward(const ein::Tensor& x) const override {
    return ein::relu(x + second(ein::relu(first(x))));
  }
};

/// Images of 16 x 16 points to four classes.
struct Net : nn::Layer {
  nn::EinMix begin{"b {2*y + ky - 1} {2*x + kx - 1} -> b y x o",
                   "ky kx o",
                   "o",
                   "ky"_a = 3,
                   "kx"_a = 3,
                   "o"_a = 16};
  Block near, far;
  nn::Linear classes{16, 4};
  Net() {
    add_module("begin", begin);
    add_module("near", near);
    add_module("far", far);
    add_module("classes", classes);
  }
  ein::Tensor forward(const ein::Tensor& images) const override {
    const ein::Tensor wide = near(ein::relu(begin(images)));
    const ein::Tensor pooled =
        ein::reduce(wide, "b {2*y + ky} {2*x + kx} c -> b y x c", "max", "ky"_a = 2, "kx"_a = 2);
    return classes(ein::reduce(far(pooled), "b y x c -> b c", "max"));
  }
};

/// Stripes that go down, across, or along either diagonal, at a random place, under noise.
ein::Tensor make_images(const ein::Tensor& classes, std::int64_t count) {
  const ein::Tensor at = ein::arange(16).to(ein::DType::f32);
  const ein::Tensor down = ein::tensor({1.0f, 0.0f, 1.0f, 1.0f}),
                    across = ein::tensor({0.0f, 1.0f, 1.0f, -1.0f});
  const ein::Tensor y = ein::gather(down, classes, "[k], b -> b"),
                    x = ein::gather(across, classes, "[k], b -> b"), begin = ein::rand({count}) * 6;
  const ein::Tensor phase = ein::map(
      ein::einsum(y, at, "b, y -> b y"), ein::einsum(x, at, "b, x -> b x"), begin,
      "b y, b x, b -> b y x",
      [](const auto& v, const auto& h, const auto& b) { return ein::sin(1.3f * (v + h) + b); });
  return phase + 0.5f * ein::randn({count, 16, 16});
}

int main() {
  ein::manual_seed(1);
  Net net;
  ein::optim::AdamW optimizer(net.parameters(), {.learning_rate = 3e-3});
  const auto right = [&](const ein::Tensor& logits, const ein::Tensor& classes) {
    const ein::Tensor hits = ein::argmax(logits, "b [k]") == classes;
    return ein::reduce(hits.to(ein::DType::f32), "b ->", "mean");
  };
  auto step = ein::compile([&](const ein::Tensor& images, const ein::Tensor& classes) {
    optimizer.zero_grad();
    const ein::Tensor loss = ein::cross_entropy(net(images), classes, "b [k], b -> ");
    loss.backward();
    optimizer.step();
    return loss;
  });

  const auto new_classes = [](std::int64_t count) {
    return (ein::rand({count}) * 4).to(ein::DType::i64);
  };
  for (int i = 0; i <= 200; ++i) {
    const ein::Tensor classes = new_classes(64);
    const ein::Tensor loss = step(make_images(classes, 64), classes);
    if (i % 50 == 0) std::printf("step %3d  loss %.4f\n", i, loss.item());
  }
  const ein::Tensor classes = new_classes(1000);
  const double share = right(net(make_images(classes, 1000)), classes).item();
  std::printf("right: %.1f %% of 1000 new images\n", 100 * share);
  return share > 0.95 ? 0 : 1;
}
