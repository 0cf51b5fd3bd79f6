// expect: axis_size_is_not_of_the_pattern
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4}), w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto made = ein::rearrange(x, "*b c -> c *b", "b"_a = 2);
#else
  const auto made = ein::rearrange(x, "*b c -> c *b", "c"_a = 4);
#endif
  return made.shape() == ein::Shape{4, 2, 3} ? 0 : 1;
}
