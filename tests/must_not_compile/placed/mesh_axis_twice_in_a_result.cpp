// expect: mesh_axis_is_repeated
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b@data k@model"> x = ein::ones({2, 4});
  const ein::Float<"k@model n@data"> w = ein::ones({4, 3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "b k, k n -> b n");
#else
  const auto y = ein::einsum(x, w, "b k, k n -> n");
#endif
  return y.rank() > 0 ? 0 : 1;
}
