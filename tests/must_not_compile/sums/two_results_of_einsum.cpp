// expect: comma_after_the_arrow
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::einsum(x, "(a + b) c -> a c, b c", "a"_a = 2);
#else
  const auto made = ein::rearrange(x, "(a + b) c -> a c, b c"_p, "a"_a = 2)[0];
#endif
  return made.shape() == ein::Shape{2, 2} ? 0 : 1;
}
