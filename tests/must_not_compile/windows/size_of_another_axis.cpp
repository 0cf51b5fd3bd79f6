// expect: axis_size_is_not_of_the_pattern
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "{t + k}, k -> t", "n"_a = 8);
#else
  const auto y = ein::einsum(x, w, "{t + k : n}, k -> t", "n"_a = 8);
#endif
  return y.shape() == ein::Shape{6} ? 0 : 1;
}
