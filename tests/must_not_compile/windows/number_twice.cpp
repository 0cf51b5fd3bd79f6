// expect: number_is_given_twice
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "{s*t + k}, k -> t", "s"_n = 2, "s"_n = 2);
#else
  const auto y = ein::einsum(x, w, "{s*t + k}, k -> t", "s"_n = 2);
#endif
  return y.shape() == ein::Shape{3} ? 0 : 1;
}
