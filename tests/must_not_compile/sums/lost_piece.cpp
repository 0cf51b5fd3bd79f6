// expect: axis_of_the_input_is_lost
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::rearrange(x, "(a + b) c -> a c", "a"_a = 2);
#else
  const auto made = ein::rearrange(x, "(a + b) c -> (b + a) c", "a"_a = 2);
#endif
  return made.shape() == ein::Shape{6, 2} ? 0 : 1;
}
