// expect: axis_has_different_sizes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b h=4"> x = ein::ones({2, 4});
  const ein::Float<"h=4"> y = ein::ones({4});
#ifdef MISTAKE
  const auto z = x * ein::Float<"h=5">(ein::ones({5}));
#else
  const auto z = x * y;
#endif
  return z.shape() == y.shape() ? 1 : 0;
}
