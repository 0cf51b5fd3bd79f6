// expect: piece_is_missing
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::rearrange(x, y, "a c, b c -> (a +) c");
#else
  const auto made = ein::rearrange(x, y, "a c, b c -> (a + b) c");
#endif
  return made.shape() == ein::Shape{9, 2} ? 0 : 1;
}
