// expect: operand_has_another_rank_than_the_pattern
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const auto y = ein::einsum<"b s c, c o -> b s o">(q, w.up);
#else
  const auto y = ein::einsum<"b h s d, h d c -> b s c">(q, w.to_result);
#endif
  return y.shape() == ein::Shape{3, 5, 8} ? 0 : 1;
}
