// expect: axis_has_two_sizes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3}), y = ein::ones({3, 4});
#ifdef MISTAKE
  const auto z = ein::einsum(x, y, "b h=3, h=4 o -> b o");
#else
  const auto z = ein::einsum(x, y, "b h=3, h=3 o -> b o");
#endif
  return z.shape() == ein::Shape{2, 4} ? 0 : 1;
}
