// expect: number_of_operands_differs
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::rearrange(x, y, "a c -> c a");
#else
  const auto made = ein::rearrange(x, y, "a c, b c -> c (a + b)");
#endif
  return made.shape() == ein::Shape{2, 9} ? 0 : 1;
}
