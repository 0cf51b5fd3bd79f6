// expect: inner_axis_of_a_group_is_placed
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"model", 1}});
  const ein::Tensor x = ein::place(ein::ones({2, 4}), mesh, "b h@model");
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b (h d@model) -> b h d", "h"_a = 2);
#else
  const auto y = ein::rearrange(x, "b (h@model d) -> b h d", "h"_a = 2);
#endif
  return y.shape() == ein::Shape{2, 2, 2} ? 0 : 1;
}
