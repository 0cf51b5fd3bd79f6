// expect: neither_operand_has_all_axes
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const auto y = x + w.bias_up;
#else
  const auto y = x + w.shift;
#endif
  return y.shape() == ein::Shape{3, 5, 8} ? 0 : 1;
}
