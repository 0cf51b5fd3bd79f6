// expect: brace_closes_nothing
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "t}, k -> t k");
#else
  const auto y = ein::einsum(x, w, "t, k -> t k");
#endif
  return y.shape() == ein::Shape{8, 3} ? 0 : 1;
}
