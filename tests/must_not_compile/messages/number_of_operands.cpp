// expect: einsum: the pattern describes 2 operands, the call has 1
// expect:   b c, c d -> b d
// expect:   ^^^  ^^^
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::einsum<"b c, c d -> b d">(x);
#else
  const auto y = ein::einsum<"b c, d c -> b d">(x, x);
#endif
  return y.shape() == ein::Shape{2, 2} ? 0 : 1;
}
