// expect: axis_has_two_types
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const auto y = ein::einsum<"b h s t, b h t d -> b h s d">(scores, q);
#else
  const auto y = ein::einsum<"b h s t, b h t d -> b h s d">(scores, values);
#endif
  return y.shape() == ein::Shape{3, 2, 5, 4} ? 0 : 1;
}
