// expect: axis_has_two_types
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const auto y = ein::einsum<"b h s d, b h s d -> b h s">(q, keys);
#else
  const auto y = ein::einsum<"b h s d, b h t d -> b h s t">(q, keys);
#endif
  return y.shape() == ein::Shape{3, 2, 5, 5} ? 0 : 1;
}
