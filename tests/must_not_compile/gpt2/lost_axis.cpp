// expect: axis_of_the_output_is_in_no_input
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const auto y = ein::einsum<"b h s d, b h t d -> b h s u">(q, keys);
#else
  const auto y = ein::einsum<"b h s d, b h t d -> b h s t">(q, keys);
#endif
  return y.shape() == ein::Shape{3, 2, 5, 5} ? 0 : 1;
}
