// expect: piece_is_no_axis
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::rearrange(x, y, "a c, b c -> (a + (b + 1)) c");
#else
  const auto made = ein::rearrange(x, y, ein::ones({2}), "a c, b c, c -> (a + b + 1) c");
#endif
  return made.shape() == ein::Shape{10, 2} ? 0 : 1;
}
