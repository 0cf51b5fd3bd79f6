// expect: ellipsis_is_inside_a_group_of_an_input
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b (... c) -> b ... c");
#else
  const auto y = ein::rearrange(x, "b ... c -> b (... c)");
#endif
  return y.shape() == ein::Shape{2, 12} ? 0 : 1;
}
