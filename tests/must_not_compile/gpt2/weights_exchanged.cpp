// expect: axis_has_two_types
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const auto y = ein::einsum<"b s c, c i -> b s i">(x, w.down);
#else
  const auto y = ein::einsum<"b s c, c i -> b s i">(x, w.up);
#endif
  return y.shape() == ein::Shape{3, 5, 32} ? 0 : 1;
}
