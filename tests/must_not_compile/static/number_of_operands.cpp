// expect: number_of_operands_differs
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch c=4"> x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::einsum<"b c, c d -> b d">(x);
#else
  const auto y = ein::einsum<"b c, d c -> b d">(x, x);
#endif
  return y.shape() == ein::Shape{2, 2} ? 0 : 1;
}
