// expect: axis_of_the_input_is_lost
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4}), w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto made = ein::rearrange(x, "*b c -> c");
#else
  const auto made = ein::rearrange(x, "*b c -> c *b");
#endif
  return made.shape() == ein::Shape{4, 2, 3} ? 0 : 1;
}
