// expect: words_touch
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4}), w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto made = ein::einsum(x, "a*b c -> a");
#else
  const auto made = ein::einsum(x, "a *b -> a");
#endif
  return made.shape() == ein::Shape{2} ? 0 : 1;
}
