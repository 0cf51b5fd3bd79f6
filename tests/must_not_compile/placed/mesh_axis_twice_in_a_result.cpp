// expect: mesh_axis_is_repeated
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"data", 1}, {"model", 1}});
  const ein::Float<"b@data k@model"> x = ein::place(ein::ones({2, 4}), mesh, "b@data k@model");
#ifdef MISTAKE
  const ein::Float<"k@model n@data"> w = ein::place(ein::ones({4, 3}), mesh, "k@model n@data");
#else
  const ein::Float<"k@model n"> w = ein::place(ein::ones({4, 3}), mesh, "k@model n");
#endif
  const auto y = ein::einsum(x, w, "b k, k n -> b n");
  return y.rank() > 0 ? 0 : 1;
}
