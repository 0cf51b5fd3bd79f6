// expect: axis_has_two_sizes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"heads=2 seq"> x = ein::ones({2, 4});
  const ein::Float<"heads=3 seq"> w = ein::ones({3, 4});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "... s, ... s -> ...");
#else
  const auto y = ein::einsum(x, w, "h s, g s -> h g");
#endif
  return y.shape() == ein::Shape{2, 3} ? 0 : 1;
}
