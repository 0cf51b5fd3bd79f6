// expect: number_of_operands_differs
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b c, d -> b c d");
#else
  const auto y = ein::rearrange(x, "b (c d) -> b c d", "c"_a = 2);
#endif
  return y.shape() == ein::Shape{2, 2, 2} ? 0 : 1;
}
