// Gradients: the same patterns, turned round.
#include <cstdio>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>

int main() {
  // A leaf that asks for its gradient, a loss, and backward().
  const ein::Tensor x = ein::from_vector<float>({1, 2, 3});
  const ein::Tensor w = ein::ones({3}).requires_grad(true);
  const ein::Tensor loss = 0.5 * ein::pow(ein::einsum(x, w, "i, i ->") - 5, 2);
  loss.backward();
  std::printf("loss %g, gradient %s\n", loss.item(), ein::to_string(w.grad()).c_str());

  // The same as a function of functions; it can be differentiated again.
  const auto f = [](const ein::Tensor& v) { return ein::einsum(v, v, v, "i, i, i ->"); };
  const auto slope = ein::grad(f);
  const auto curvature =
      ein::grad([&](const ein::Tensor& v) { return ein::reduce(slope(v), "i ->", "sum"); });
  std::printf("sum of cubes: gradient %s, derivative of its sum %s\n",
              ein::to_string(slope(x)).c_str(), ein::to_string(curvature(x)).c_str());

  // Descent: updates are written inside NoGrad, so that nothing remembers them.
  const ein::Tensor target = ein::from_vector<float>({3, -1, 2});
  const ein::Tensor p = ein::zeros({3}).requires_grad(true);
  for (int step = 0; step < 50; ++step) {
    p.zero_grad();
    ein::mse_loss(p, target).backward();
    const ein::NoGrad no_grad;
    p.copy_from(p - 0.3 * p.grad());
  }
  std::printf("after 50 steps of descent %s\n", ein::to_string(p).c_str());
}
