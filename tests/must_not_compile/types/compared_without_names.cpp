// expect: axis_needs_a_name
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"_ b c"> x = ein::ones({2, 3, 4});
  const ein::Float<"_ c b"> y = ein::ones({2, 4, 3});
#ifdef MISTAKE
  const auto z = x < y;
#else
  const auto z = x < ein::Float<"_ b c">(ein::rearrange(y, "a c b -> a b c"));
#endif
  return z.shape() == ein::Shape{2, 3, 4} ? 0 : 1;
}
