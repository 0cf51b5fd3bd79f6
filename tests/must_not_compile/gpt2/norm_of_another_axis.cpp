// expect: axis_has_two_types
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const auto y = ein::einsum<"b s c, c -> b s c">(x, w.bias_up);
#else
  const auto y = ein::einsum<"b s c, c -> b s c">(x, w.scale);
#endif
  return y.shape() == ein::Shape{3, 5, 8} ? 0 : 1;
}
