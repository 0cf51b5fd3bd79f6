// expect: axis_is_placed_differently
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b@data k"> x = ein::ones({2, 4});
  const ein::Float<"k@model n"> w = ein::ones({4, 3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "b k, j n -> b@model n");
#else
  const auto y = ein::einsum(x, w, "b k, j n -> b@data n");
#endif
  return y.shape() == ein::Shape{2, 3} ? 0 : 1;
}
