// Assignment 2, section 2: what each of two processes holds of parameters, gradients and AdamW's
// moments, when nothing, the moments, gradients too, or parameters too are split over them; then
// the same of the handout's xl.
//
//     ein launch -n 2 -- build/samples/cs336_18_sharding
#include <cstdio>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include <ein/shapes_only.hpp>

namespace nn = ein::nn;
using ein::Tensor;

struct Net : nn::Layer {
  nn::Embedding table{100, 64};
  nn::RMSNorm norm1{64};
  nn::Linear up{64, 128, false};
  nn::RMSNorm norm2{128};
  nn::Linear down{128, 64, false}, head{64, 100, false};
  EIN_MODULES(table, norm1, up, norm2, down, head);
  Tensor forward(const Tensor& tokens) const override {
    return head(down(norm2(ein::relu(up(norm1(table(tokens)))))));
  }
};

/// The losses of ten steps, `zero` saying what is split: 0 nothing ... 3 parameters too.
std::vector<double> losses(const ein::Mesh& mesh, int zero) {
  ein::manual_seed(5);
  Net net;
  const auto ids = [&](std::int64_t factor) {
    return ein::place(ein::remainder(ein::arange(160).view({20, 8}) * factor, 100), mesh,
                      "b@data s");
  };
  const Tensor tokens = ids(7), targets = ids(3);
  if (zero == 3) net.shard(mesh, "data");
  ein::optim::AdamW optimizer(net.parameters(), {.learning_rate = 0.1, .weight_decay = 0.1});
  if (zero == 1 || zero == 2) optimizer.shard(mesh, "data");
  auto step = ein::compile([&] {
    optimizer.zero_grad();
    const Tensor loss = ein::cross_entropy(net(tokens), targets, "b s [v], b s");
    loss.backward();
    if (zero == 2) optimizer.shard_gradients();
    optimizer.step();
    return loss;
  });
  std::vector<double> all;
  for (int i = 0; i < 10; ++i) all.push_back(step().item<double>());
  const ein::StepBill bill = step.bill();
  if (mesh.rank() == 0) {
    std::printf("ZeRO %d: bytes of parameters %zu, gradients %zu, moments %zu\n", zero,
                bill.parameters, bill.gradients, bill.optimizer_state);
    std::printf("%s", ein::to_string(step.exchanges()).c_str());
  }
  return all;
}

int main() {
  const ein::Mesh mesh({{"data", 2}});
  std::vector<double> whole;
  for (int zero = 0; zero <= 3; ++zero) {
    const std::vector<double> all = losses(mesh, zero);
    if (zero == 0) whole = all;
    double off = 0;
    for (std::size_t i = 0; i < all.size(); ++i) off = std::max(off, std::abs(all[i] - whole[i]));
    if (mesh.rank() == 0)
      std::printf("  ten losses are those of ZeRO 0, %s\n", off == 0     ? "bit for bit"
                                                            : off < 1e-4 ? "to 1e-4"
                                                                         : "no");
  }
  if (mesh.rank() != 0) return 0;
  const ein::ShapesOnly shapes;
  const nn::Decoder xl(nn::cs336({.vocabulary = 10000,
                                  .context = 512,
                                  .width = 2560,
                                  .layers = 32,
                                  .heads = 32,
                                  .inner = 10240}));
  double all = 0, norms = 0;
  for (const auto& [name, p] : xl.named_parameters())
    (p.rank() == 1 ? norms : all) += static_cast<double>(p.numel());
  all += norms;
  std::printf("xl in f32, GB: parameters %.3f, with gradients %.3f, after a step %.3f\n",
              4 * all / 1e9, 8 * all / 1e9, 16 * all / 1e9);
  std::printf(
      "  moments halved over two processes %.3f; all but norms (%.0f parameters) halved %.3f\n",
      12 * all / 1e9, norms, 16 * ((all - norms) / 2 + norms) / 1e9);
}
