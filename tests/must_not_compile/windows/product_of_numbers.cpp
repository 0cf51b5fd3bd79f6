// expect: coefficient_is_no_number
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "{t + 2*3}, k -> t k");
#else
  const auto y = ein::einsum(x, w, "{t + 6}, k -> t k");
#endif
  return y.shape() == ein::Shape{2, 3} ? 0 : 1;
}
