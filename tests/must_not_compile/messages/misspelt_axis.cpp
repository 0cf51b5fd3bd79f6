// expect: rearrange: a size is given for axis 'haeds', which the pattern does not have
// expect:   b (heads d) -> b heads d
// expect:   help: did you mean 'heads'?
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange<"b (heads d) -> b heads d">(x, "haeds"_a = 2, "d"_a = 2);
#else
  const auto y = ein::rearrange<"b (heads d) -> b heads d">(x, "heads"_a = 2, "d"_a = 2);
#endif
  return y.shape() == ein::Shape{2, 2, 2} ? 0 : 1;
}
