// expect: brackets_are_inside_a_group
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::from_diagonal(x, "b (h=2 [i])");
#else
  const auto y = ein::from_diagonal(ein::rearrange(x, "b (h=2 i) -> b h i"), "b h [i]");
#endif
  return y.shape() == ein::Shape{2, 2, 2, 2} ? 0 : 1;
}
