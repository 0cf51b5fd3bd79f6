// expect: mesh_axis_is_repeated
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"x", 1}, {"y", 1}});
  const ein::Tensor x = ein::place(ein::ones({2, 4}), mesh, "b@x@y s");
#ifdef MISTAKE
  const auto y = ein::softmax(x, "b@x@x [s]");
#else
  const auto y = ein::softmax(x, "b@x@y [s]");
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
