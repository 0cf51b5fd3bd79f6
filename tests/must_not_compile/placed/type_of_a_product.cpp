// expect: only_a_named_axis_is_placed
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"model", 1}});
  const ein::Tensor x = ein::place(ein::ones({2, 4}), mesh, "b h@model");
#ifdef MISTAKE
  const ein::Float<"b h*d@model"> y = x;
#else
  const ein::Float<"b hidden@model"> y = x;
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
