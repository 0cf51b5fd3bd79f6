// expect: axis_size_is_not_of_the_pattern
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b (heads d) -> b heads d", "haeds"_a = 2);
#else
  const auto y = ein::rearrange(x, "b (heads d) -> b heads d", "heads"_a = 2);
#endif
  return y.shape() == ein::Shape{2, 2, 2} ? 0 : 1;
}
