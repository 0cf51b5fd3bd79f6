// Causal attention compiled for a GPU, forward and with its gradients: the medians of rounds of
// calls. Arithmetic counts half of the scores, 4·b·h·t²·d / 2 forward, and 2.5 times that for the
// gradients. usage: ein_gpu_attention [DEVICE]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>

namespace {

using ein::Tensor;

double median_seconds(ein::Device device, const std::function<void()>& call) {
  constexpr int calls = 20, rounds = 15;
  for (int i = 0; i < 3; ++i) call();
  ein::synchronize(device);
  std::vector<double> times;
  for (int r = 0; r < rounds; ++r) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    ein::synchronize(device);
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls);
  }
  std::sort(times.begin(), times.end());
  return times[rounds / 2];
}

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape()[3]));
  const Tensor scores = ein::einsum(q, k, "b h q d, b h k d -> b h q k") * scale;
  const Tensor causal = ein::tril(scores, "... [q k]", 0, -std::numeric_limits<double>::infinity());
  return ein::einsum(ein::softmax(causal, "b h q [k]"), v, "b h q k, b h k d -> b h q d");
}

void show(const char* name, ein::DType dtype, const ein::Shape& shape, double seconds,
          double flops) {
  std::printf("%-28s %-5s %-18s %10.1f us %8.1f TFLOP/s\n", name,
              std::string(ein::name(dtype)).c_str(), shape.to_string().c_str(), seconds * 1e6,
              flops / seconds / 1e12);
}

void measure(ein::Device device, ein::DType dtype, const ein::Shape& shape) {
  const auto made = [&] { return ein::randn(shape, ein::DType::f32, device).to(dtype); };
  const Tensor q = made(), k = made(), v = made(), dout = made();
  const double forward_flops =
      2.0 * static_cast<double>(shape[0] * shape[1] * shape[2] * shape[2] * shape[3]);
  auto forward = ein::compile(
      [](const Tensor& q, const Tensor& k, const Tensor& v) { return attend(q, k, v); });
  show("attention forward", dtype, shape, median_seconds(device, [&] { forward(q, k, v); }),
       forward_flops);
  auto both =
      ein::compile([](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dout) {
        std::vector<Tensor> leaves{q.detach(), k.detach(), v.detach()};
        for (Tensor& leaf : leaves) leaf.requires_grad(true);
        const Tensor out = attend(leaves[0], leaves[1], leaves[2]);
        std::vector<Tensor> results = ein::gradients(out, dout, leaves);
        results.push_back(out);
        return results;
      });
  show("attention forward, gradients", dtype, shape,
       median_seconds(device, [&] { both(q, k, v, dout); }), 3.5 * forward_flops);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const ein::Device device = ein::cuda(argc > 1 ? std::atoi(argv[1]) : 0);
    measure(device, ein::DType::bf16, {16, 12, 1024, 64});
    measure(device, ein::DType::bf16, {4, 16, 4096, 64});
    measure(device, ein::DType::bf16, {4, 16, 4096, 128});
    measure(device, ein::DType::f32, {4, 12, 1024, 64});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
