// expect: anonymous_axis_of_the_output_is_in_no_input
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b c -> b c 3");
#else
  const auto y = ein::repeat(x, "b c -> b c 3");
#endif
  return y.shape() == ein::Shape{2, 4, 3} ? 0 : 1;
}
