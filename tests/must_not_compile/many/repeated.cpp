// expect: axis_is_repeated
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4}), w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto made = ein::rearrange(x, "*b *b -> *b");
#else
  const auto made = ein::rearrange(x, "*b -> (*b)");
#endif
  return made.shape() == ein::Shape{24} ? 0 : 1;
}
