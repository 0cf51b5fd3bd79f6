// expect: number_is_missing
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "{t*k}, k -> t");
#else
  const auto y = ein::einsum(x, w, "{t + k}, k -> t");
#endif
  return y.shape() == ein::Shape{6} ? 0 : 1;
}
