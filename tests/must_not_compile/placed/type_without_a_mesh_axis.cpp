// expect: mesh_axis_is_missing
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"x", 1}});
  const ein::Tensor x = ein::place(ein::ones({2, 4}), mesh, "b s@x");
#ifdef MISTAKE
  const ein::Float<"b s@=4"> y = x;
#else
  const ein::Float<"b s@x=4"> y = x;
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
