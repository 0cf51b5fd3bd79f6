// expect: axis_has_two_types
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch hidden"> x = ein::ones({2, 3});
  const ein::Float<"out hidden"> w = ein::ones({3, 3});
#ifdef MISTAKE
  const auto y = ein::matmul(x, w);
#else
  const auto y = ein::matmul(x, ein::rearrange<"o h -> h o">(w));
#endif
  return y.shape() == ein::Shape{2, 3} ? 0 : 1;
}
