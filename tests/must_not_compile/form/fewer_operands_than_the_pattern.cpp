// expect: number_of_operands_differs
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::einsum(x, "b c, c d -> b d");
#else
  const auto y = ein::einsum(x, x, "b c, d c -> b d");
#endif
  return y.shape() == ein::Shape{2, 2} ? 0 : 1;
}
