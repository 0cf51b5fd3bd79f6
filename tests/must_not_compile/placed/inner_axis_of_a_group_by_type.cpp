// expect: inner_axis_of_a_group_is_placed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b h d@model"> x = ein::ones({2, 4, 3});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b h d -> b (h d)");
#else
  const auto y = ein::rearrange(x, "b h d -> b (d h)");
#endif
  return y.shape() == ein::Shape{2, 12} ? 0 : 1;
}
