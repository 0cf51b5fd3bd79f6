// expect: inner_axis_of_a_group_is_placed
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"model", 1}});
  const ein::Float<"b h d@model"> x = ein::place(ein::ones({2, 4, 3}), mesh, "b h d@model");
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b h d -> b (h d)");
#else
  const auto y = ein::rearrange(x, "b h d -> b (d h)");
#endif
  return y.shape() == ein::Shape{2, 12} ? 0 : 1;
}
