// expect: neither_operand_has_all_axes
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const auto y = ein::where(logits > 0.0, scores, 0.0);
#else
  const auto y = ein::where(scores > 0.0, scores, 0.0);
#endif
  return y.shape() == ein::Shape{3, 2, 5, 5} ? 0 : 1;
}
