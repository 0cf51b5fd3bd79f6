// expect: number_of_operands_differs
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "b c -> b");
#else
  const auto y = ein::einsum(x, w, "b c, c _ -> b");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
