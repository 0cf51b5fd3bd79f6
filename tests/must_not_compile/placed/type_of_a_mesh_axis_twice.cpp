// expect: mesh_axis_is_repeated
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"x", 1}, {"y", 1}});
  const ein::Tensor x = ein::place(ein::ones({2, 4}), mesh, "b@x s@y");
#ifdef MISTAKE
  const ein::Float<"b@x s@x"> y = x;
#else
  const ein::Float<"b@x s@y"> y = x;
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
