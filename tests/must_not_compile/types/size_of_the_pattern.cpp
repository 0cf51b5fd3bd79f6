// expect: axis_has_two_sizes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b h=3"> x = ein::ones({2, 3});
#ifdef MISTAKE
  const auto y = ein::reduce(x, "b h=4 -> b", "sum");
#else
  const auto y = ein::reduce(x, "b h=3 -> b", "sum");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
