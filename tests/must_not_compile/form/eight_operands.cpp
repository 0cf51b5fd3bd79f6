// expect: number_of_operands_differs
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({4});
#ifdef MISTAKE
  const auto y = ein::einsum(x, x, x, x, x, x, x, x, "a, b, c, d, e, f, g -> a");
#else
  const auto y = ein::einsum(x, x, x, x, x, x, x, x, "a, a, a, a, b, b, b, b -> a b");
#endif
  return y.shape() == ein::Shape{4, 4} ? 0 : 1;
}
