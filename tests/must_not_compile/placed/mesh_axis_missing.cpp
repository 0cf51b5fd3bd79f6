// expect: mesh_axis_is_missing
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"data", 1}});
  const ein::Tensor x = ein::place(ein::ones({2, 4}), mesh, "b@data s");
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b@ data s -> s b");
#else
  const auto y = ein::rearrange(x, "b@data s -> s b");
#endif
  return y.shape() == ein::Shape{4, 2} ? 0 : 1;
}
