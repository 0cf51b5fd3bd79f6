// expect: axis_has_two_sizes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"i=2 j=3"> x = ein::ones({2, 3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, "i i -> i");
#else
  const auto y = ein::einsum(x, "i j -> i");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
