// expect: mesh_axis_is_repeated
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"data", 1}, {"model", 1}});
  const ein::Float<"b@data k@model"> x = ein::place(ein::ones({2, 4}), mesh, "b@data k@model");
  const ein::Tensor ones = ein::ones({4, 3});
#ifdef MISTAKE
  const ein::Float<"k@model n@data"> w = ein::place(ones, mesh, "k@model n@data");
  const auto y = ein::einsum(x, w, "b k, k n -> b n");
#else
  const ein::Float<"k@model n"> w = ein::place(ones, mesh, "k@model n");
  const auto y = ein::einsum(x, w, "b k, k n -> b n");
#endif
  return y.rank() > 0 ? 0 : 1;
}
