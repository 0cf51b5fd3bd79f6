// expect: axis_size_is_not_of_the_pattern
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "b c, c d -> b d", "h"_a = 8);
#else
  const auto y = ein::einsum(x, w, "b c, c d -> b d", "d"_a = 5);
#endif
  return y.shape() == ein::Shape{2, 5} ? 0 : 1;
}
