// expect: einsum takes at most 8 operands one by one
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({4});
  const std::vector<ein::Tensor> xs(9, x);
#ifdef MISTAKE
  const auto y = ein::einsum(x, x, x, x, x, x, x, x, x, "a, a, a, a, a, a, a, a, a -> a");
#else
  const auto y = ein::einsum(xs, "a, a, a, a, a, a, a, a, a -> a");
#endif
  return y.shape() == ein::Shape{4} ? 0 : 1;
}
