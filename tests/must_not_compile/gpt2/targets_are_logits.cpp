// expect: operand_has_another_rank_than_the_pattern
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const auto y = ein::cross_entropy<"b s [v], b s">(logits, logits);
#else
  const auto y = ein::cross_entropy<"b s [v], b s">(logits, tokens);
#endif
  return y.shape() == ein::Shape{} ? 0 : 1;
}
