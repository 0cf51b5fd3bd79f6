// Training: a module, an optimizer, and a step that is compiled into one program.
#include <cstdio>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>

namespace nn = ein::nn;

/// Two layers: 8 numbers in, one out.
struct Net : nn::Layer {
  nn::Linear hidden{8, 64}, out{64, 1};
  Net() {
    add_module("hidden", hidden);
    add_module("out", out);
  }
  ein::Tensor forward(const ein::Tensor& x) const override {
    return ein::rearrange(out(ein::gelu(hidden(x))), "b 1 -> b");
  }
};

int main() {
  ein::manual_seed(1);
  Net net;
  ein::optim::AdamW optimizer(net.parameters(), {.learning_rate = 1e-2});

  // Traced on its first call: forward, backward and update become one graph.
  auto step = ein::compile([&](const ein::Tensor& x, const ein::Tensor& y) {
    optimizer.zero_grad();
    const ein::Tensor loss = ein::mse_loss(net(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  });

  for (int i = 0; i <= 300; ++i) {
    const ein::Tensor x = ein::randn({256, 8});
    const ein::Tensor y = ein::reduce(x * x, "b d -> b", "sum");  // what to learn
    const ein::Tensor loss = step(x, y);
    if (i % 60 == 0) std::printf("step %3d  loss %.4f\n", i, loss.item());
  }

  std::printf("one step: %s FLOPs, %zu operations, %zu bytes of intermediate values in %zu\n",
              step.cost().model.to_string().c_str(), step.graph().ops.size(),
              step.memory().unshared, step.memory().arena);
}
