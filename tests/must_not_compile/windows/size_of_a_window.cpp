// expect: axis_has_two_sizes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"n=8"> x = ein::ones({8});
  const ein::Float<"k=3"> w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::einsum(ein::einsum(x, w, "{t + k}, k -> t"_p), x, "t, t -> t"_p);
#else
  const auto y = ein::einsum(ein::einsum(x, w, "{t + k - 1}, k -> t"_p), x, "t, t -> t"_p);
#endif
  return y.shape() == ein::Shape{8} ? 0 : 1;
}
