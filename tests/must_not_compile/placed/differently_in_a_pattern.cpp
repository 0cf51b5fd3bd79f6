// expect: axis_is_placed_differently
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::einsum(x, x, "b@x s, b@y s -> b");
#else
  const auto y = ein::einsum(x, x, "b@x s, b@x s -> b");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
