// expect: axis_is_repeated
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({4, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "i i -> i");
#else
  const auto y = ein::einsum(x, "i i -> i");
#endif
  return y.shape() == ein::Shape{4} ? 0 : 1;
}
