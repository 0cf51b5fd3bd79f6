// Lecture 2, "resource accounting", of 2025 and 2026: the figures that changed, and those that are
// new.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/call.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/hardware.hpp>
#include <ein/napkin.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>

namespace nn = ein::nn;
using ein::Tensor;

void largest_models() {
  const ein::Hardware h100 = ein::hardware_named("h100-sxm");
  // bf16 parameters and gradients, f32 moments, and no master copy: 2 + 2 + (4 + 4).
  ein::napkin::Recipe of_2026 = ein::napkin::mixed_precision();
  of_2026.has_f32_master = false;
  for (const auto& [year, recipe] :
       {std::pair(2025, ein::napkin::Recipe()), std::pair(2026, of_2026)}) {
    const auto bytes = static_cast<double>(ein::napkin::bytes_per_parameter(recipe));
    std::printf("%d: %.0f bytes a parameter, so 8 H100 hold %.0f parameters\n", year, bytes,
                std::floor(ein::napkin::largest_model(8, h100.memory, bytes)));
  }
  for (const auto& [year, days] : {std::pair(2025, 7), std::pair(2026, 14)})
    std::printf("%d: 8 H100 for two weeks, as it multiplies: %.7e FLOPs\n", year,
                ein::napkin::flops_in(86400.0 * days, {8, *h100.peak(ein::DType::bf16), 1}));
  std::printf("B200: f32 %.4g, bf16 %.4g FLOP/s\n",
              *ein::hardware_named("b200").peak(ein::DType::f32),
              *ein::hardware_named("b200").peak(ein::DType::bf16));
}

/// FLOPs and bytes of a call in bf16, its intensity, and the bound on the MFU. `each` is what an
/// operation on an element counts.
void intensity(const char* what, const ein::Cost& cost, double each) {
  const ein::Hardware h100 = ein::hardware_named("h100-sxm");
  const double ridge = *h100.peak(ein::DType::bf16) / h100.bandwidth;
  const double flops = cost.matmul_only.approximate() > 0 ? (cost.mul + cost.add).approximate()
                                                          : each * cost.model.approximate();
  const double bytes = cost.bytes().approximate(), i = flops / bytes;
  std::printf("%-16s %10.0f FLOPs, %7.0f bytes: intensity %.7g, MFU at most %.6f\n", what, flops,
              bytes, i, std::min(1.0, i / ridge));
}

void rooflines() {
  const ein::Hardware h100 = ein::hardware_named("h100-sxm");
  std::printf("ridge of an H100: %.3f FLOPs a byte\n",
              *h100.peak(ein::DType::bf16) / h100.bandwidth);
  const std::int64_t many = 1 << 20, n = 1024;
  ein::CallOptions options;
  options.dtype = ein::DType::bf16;
  const auto counted = [&](const char* pattern, const std::vector<ein::Shape>& shapes) {
    return ein::cost(ein::graph_of(ein::Operation::einsum, ein::runtime(pattern), shapes, options));
  };
  const ein::Tensor x = ein::ones({many}, ein::DType::bf16);
  const auto ran = [&](Tensor (*f)(const Tensor&)) {
    const ein::CostScope scope;
    f(x);
    return scope.total();
  };
  const ein::Cost relu = ran([](const Tensor& y) { return ein::maximum(y, 0); });
  intensity("ReLU, max(x, 0)", relu, 1);
  intensity("ein::relu", ran(ein::relu), 1);  // a comparison and a selection
  intensity("GELU, as 20", relu, 20);
  intensity("GELU, as one", ran(ein::gelu), 1);
  intensity("dot", counted("n, n ->", {{many}, {many}}), 1);
  intensity("matrix, vector", counted("m n, n -> m", {{n, n}, {n}}), 1);
  intensity("matmul", counted("m k, k n -> m n", {{n, n}, {n, n}}), 1);
}

void nvfp4() {
  // E2M1: a sign, two bits of exponent, one of mantissa; below the least exponent none is implied.
  std::vector<double> values;
  for (int exponent = 0; exponent < 4; ++exponent)
    for (int mantissa = 0; mantissa < 2; ++mantissa)
      for (const double sign : {1.0, -1.0})
        values.push_back(
            sign * (exponent == 0 ? 0.5 * mantissa : (1 + 0.5 * mantissa) * (1 << (exponent - 1))));
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::printf("NVFP4:");
  for (const double v : values) std::printf(" %g", v == 0 ? 0.0 : v);
  std::printf("\n");
}

void deep_network() {
  const nn::Cruncher eight(8, 3);
  std::printf("3 layers of 8: %lld parameters in matrices\n",
              static_cast<long long>(eight.parameter_count() - 8));
  const std::int64_t b = 2, d = 4, layers = 3, parameters = layers * d * d;
  const std::int64_t recipe =
      ein::napkin::bytes_per_parameter({ein::napkin::Optimizer::adagrad, ein::DType::bf16,
                                        ein::DType::bf16, ein::DType::f32, false});
  std::printf("3 layers of 4, B 2, AdaGrad: %lld bytes, %s FLOPs\n",
              static_cast<long long>(parameters * recipe + 2 * b * d * layers),
              ein::napkin::training_flops(parameters, b).to_string().c_str());
  std::printf("accumulation: B 64, D 1024, L 16 keep %d bytes, in 4 micro-batches %d\n",
              2 * 64 * 1024 * 16, 2 * 16 * 1024 * 16);
}

int main() {
  largest_models();
  rooflines();
  nvfp4();
  deep_network();
}
