// expect: axis_has_two_sizes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch hidden=4"> x = ein::ones({2, 4});
  const ein::Float<"hidden=4 out=5"> w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "b h, o h -> b o");
#else
  const auto y = ein::einsum(x, w, "b h, h o -> b o");
#endif
  return y.shape() == ein::Shape{2, 5} ? 0 : 1;
}
