// expect: neither_operand_has_all_axes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b s"> x = ein::ones({2, 3});
  const ein::Float<"s c"> y = ein::ones({3, 4});
#ifdef MISTAKE
  const auto z = x + y;
#else
  const auto z = ein::repeat<"b s -> b s c">(x, "c"_a = 4) + y;
#endif
  return z.shape() == ein::Shape{2, 3, 4} ? 0 : 1;
}
