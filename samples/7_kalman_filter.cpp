// A Kalman filter of many targets at once: matrices by named axes, and steps that take no memory.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <ein/compile.hpp>
#include <ein/ein.hpp>

using ein::Tensor;

int main() {
  const std::int64_t targets = 100;
  const double dt = 0.1, noise = 0.5, jerk = 0.01;

  // State s: position and velocity in two directions. Measured, m: the position.
  const Tensor f = ein::tensor(
      {{1.0, 0.0, dt, 0.0}, {0.0, 1.0, 0.0, dt}, {0.0, 0.0, 1.0, 0.0}, {0.0, 0.0, 0.0, 1.0}},
      ein::DType::f64);
  const Tensor h = ein::tensor({{1.0, 0.0, 0.0, 0.0}, {0.0, 1.0, 0.0, 0.0}}, ein::DType::f64);
  const Tensor q = jerk * ein::eye(4, ein::DType::f64),
               r = noise * noise * ein::eye(2, ein::DType::f64);

  // What is known of each target t: the mean x and the covariance p.
  const Tensor x = ein::zeros({targets, 4}, ein::DType::f64);
  const Tensor p = ein::zeros({targets, 4, 4}, ein::DType::f64);
  p.copy_from(
      ein::repeat(100 * ein::eye(4, ein::DType::f64), "s z -> t s z", ein::AxisSize{"t", targets}));

  auto step = ein::compile([&](const Tensor& measured) {
    const Tensor x1 = ein::einsum(f, x, "s z, t z -> t s");
    const Tensor p1 = ein::einsum(f, p, f, "s z, t z y, w y -> t s w") + q;
    const Tensor hp = ein::einsum(h, p1, "m s, t s z -> t m z");
    const Tensor spread = ein::einsum(hp, h, "t m s, n s -> t m n") + r;
    // The gain k = p1 hᵀ spread⁻¹, as spread kᵀ = h p1.
    const Tensor gain = ein::solve(spread, hp, "t [m n], t [m] s -> t [n] s");
    const Tensor surprise = measured - ein::einsum(h, x1, "m s, t s -> t m");
    x.copy_from(x1 + ein::einsum(gain, surprise, "t m s, t m -> t s"));
    p.copy_from(p1 - ein::einsum(gain, hp, "t m s, t m z -> t s z"));
  });

  // Targets on straight lines, seen with noise. The measurements lie in memory of ours.
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> truth(static_cast<std::size_t>(targets) * 4),
      seen(static_cast<std::size_t>(targets) * 2);
  for (double& value : truth) value = normal(random);
  const Tensor measured = ein::from_span(seen, {targets, 2});
  for (int i = 0; i <= 100; ++i) {
    double of_measured = 0, of_filtered = 0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(targets); ++t) {
      for (std::size_t m = 0; m < 2; ++m) {
        truth[4 * t + m] += dt * truth[4 * t + 2 + m];
        seen[2 * t + m] = truth[4 * t + m] + noise * normal(random);
        of_measured += std::pow(seen[2 * t + m] - truth[4 * t + m], 2);
      }
    }
    step(measured);
    const double* const found = x.data<double>();
    for (std::size_t t = 0; t < static_cast<std::size_t>(targets); ++t) {
      for (std::size_t m = 0; m < 2; ++m)
        of_filtered += std::pow(found[4 * t + m] - truth[4 * t + m], 2);
    }
    if (i % 25 == 0) {
      std::printf("step %3d  error measured %.3f  filtered %.3f\n", i,
                  std::sqrt(of_measured / (2 * static_cast<double>(targets))),
                  std::sqrt(of_filtered / (2 * static_cast<double>(targets))));
    }
  }
  std::printf("a step: %s FLOPs in products, %s in decompositions (an estimate)\n",
              step.cost().matmul_only.to_string().c_str(),
              step.cost().estimated.to_string().c_str());
}
