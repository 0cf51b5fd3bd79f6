// expect: piece_is_several_axes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::rearrange(x, y, "a c, b d -> (a c + b d)");
#else
  const auto made = ein::rearrange(x, y, "a c, b d -> ((a c) + (b d))");
#endif
  return made.shape() == ein::Shape{18} ? 0 : 1;
}
