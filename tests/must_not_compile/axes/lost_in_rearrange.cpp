// expect: axis_of_the_input_is_lost
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b h w -> b h");
#else
  const auto y = ein::rearrange(x, "b h w -> b (h w)");
#endif
  return y.shape() == ein::Shape{2, 12} ? 0 : 1;
}
