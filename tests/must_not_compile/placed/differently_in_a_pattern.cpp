// expect: axis_is_placed_differently
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"x", 1}, {"y", 1}});
  const ein::Tensor x = ein::place(ein::ones({2, 4}), mesh, "b@x s");
#ifdef MISTAKE
  const auto y = ein::einsum(x, x, "b@x s, b@y s -> b");
#else
  const auto y = ein::einsum(x, x, "b@x s, b@x s -> b");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
