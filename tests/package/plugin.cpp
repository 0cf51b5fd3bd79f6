// A shared library that holds ein: products, code made at run time, threads and a gradient.
#include <cmath>
#include <ein/ein.hpp>

extern "C" double plugin_work() {
  const ein::Tensor x = ein::randn({64, 128});
  ein::Tensor w = ein::randn({128, 32});
  w.requires_grad(true);
  const ein::Tensor y = ein::softmax(ein::einsum(x, w, "b i, i o -> b o"), "b [o]");
  const ein::Tensor sum = ein::reduce(y, "b o ->", "sum");
  sum.backward();
  return sum.item<float>();  // each row of a softmax sums to 1
}
