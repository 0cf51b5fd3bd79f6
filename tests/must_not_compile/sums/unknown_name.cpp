// expect: axis_of_the_output_is_in_no_input
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::rearrange(x, y, "a c, b c -> (a + d) c");
#else
  const auto made = ein::rearrange(x, y, "a c, b c -> (b + a) c");
#endif
  return made.shape() == ein::Shape{9, 2} ? 0 : 1;
}
