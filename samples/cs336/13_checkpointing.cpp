// Assignment 2, section 1: gradient checkpointing. Of L layers the input of every k-th is kept, and
// the layers in between are computed again: memory L/k inputs and k layers' values, and one forward
// pass more.
#include <cmath>
#include <cstdio>

#include <ein/autograd.hpp>
#include <ein/checkpoint.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>

namespace nn = ein::nn;
using ein::Tensor;

/// Two matrices and a function between: what a layer keeps is mostly the values inside.
struct Layer : nn::Layer {
  explicit Layer(std::int64_t dim) : up(dim, 4 * dim, false), down(4 * dim, dim, false) {}
  Tensor forward(const Tensor& x) const override { return x + down(ein::tanh(up(x))); }
  nn::Linear up, down;
  EIN_MODULES(up, down);
};
struct Stack : nn::Module {
  Stack(int count, std::int64_t dim) {
    for (int i = 0; i < count; ++i) layers.emplace_back(dim);
  }
  nn::ModuleList<Layer> layers;
  EIN_MODULES(layers);
};

void measured() {
  constexpr int count = 16;
  constexpr std::int64_t dim = 32, rows = 512;
  ein::manual_seed(0);
  const Stack stack(count, dim);
  const Tensor x = ein::randn({rows, dim});
  for (const std::size_t k : {0, 1, 2, 4, 8, 16}) {
    auto gradients = ein::compile([&] {
      stack.zero_grad();
      Tensor y = x;
      if (k == 0)
        for (const Layer& layer : stack.layers) y = layer(y);
      else
        y = nn::through_checkpoints(stack.layers, x, k);
      reduce(y * y, "b c ->", "mean").backward();
      std::vector<Tensor> all;
      for (const Tensor& p : stack.parameters()) all.push_back(p.grad());
      return all;
    });
    gradients();
    const double forward = gradients.bill().forward.matmul_only.approximate();
    const double again = gradients.bill().recompute.matmul_only.approximate();
    const double inputs = static_cast<double>(gradients.memory().arena) / (4 * rows * dim);
    if (k == 0)
      std::printf("nothing is computed again\n");
    else
      std::printf("every %zu layers: %.2f forward passes again\n", k, again / forward);
    std::printf("  memory of %.0f layer inputs\n", inputs);
  }
}

/// The handout's xl: a residual stream of 80 MiB, 3,651.3125 MiB kept by a block, 32 blocks.
void of_xl() {
  const double n = 32, input = 80, kept = 3651.3125;
  for (const double k : {1, 2, 4, 32})
    std::printf("xl, checkpoints of %2.0f blocks: %.2f MiB at most\n", k,
                k < n ? n / k * input + k * kept : n * kept + input);
  std::printf("best: %.2f blocks, by sqrt(N c / r): so every block\n", std::sqrt(n * input / kept));
  std::printf("two checkpoints of two blocks keep %.0f MiB\n", 2 * input);
}

int main() {
  measured();
  of_xl();
}
