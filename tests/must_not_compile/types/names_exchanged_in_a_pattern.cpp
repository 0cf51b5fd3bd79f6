// expect: axis_has_two_types
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b s h"> x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto y = ein::reduce(x, "s b h -> b h", "sum");
#else
  const auto y = ein::reduce(x, "b s h -> b h", "sum");
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
