// expect: only_a_named_axis_is_placed
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"data", 1}, {"model", 1}});
  const ein::Tensor x = ein::place(ein::ones({2, 4}), mesh, "b@model s");
#ifdef MISTAKE
  const auto y = ein::repeat(x, "b s -> b s 3@data");
#else
  const auto y = ein::repeat(x, "b s -> b@model s k@data", "k"_a = 3);
#endif
  return y.shape() == ein::Shape{2, 4, 3} ? 0 : 1;
}
