// expect: axis_is_placed_differently
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"data", 1}, {"model", 1}});
  const ein::Float<"b@data k"> x = ein::place(ein::ones({2, 4}), mesh, "b@data k");
  const ein::Float<"k@model n"> w = ein::place(ein::ones({4, 3}), mesh, "k@model n");
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "b k, k n -> b n");
#else
  const auto y = ein::einsum(x, w, "b _, _ n -> b n");
#endif
  return y.shape() == ein::Shape{2, 3} ? 0 : 1;
}
