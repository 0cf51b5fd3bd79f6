// expect: coefficient_is_no_number
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "{t*2 + k}, k -> t");
#else
  const auto y = ein::einsum(x, w, "{2*t + k}, k -> t");
#endif
  return y.shape() == ein::Shape{3} ? 0 : 1;
}
