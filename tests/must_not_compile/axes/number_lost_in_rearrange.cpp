// expect: anonymous_axis_of_the_input_is_lost
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b 3 w -> b w");
#else
  const auto y = ein::rearrange(x, "b c w -> b w c", "c"_a = 3);
#endif
  return y.shape() == ein::Shape{2, 4, 3} ? 0 : 1;
}
