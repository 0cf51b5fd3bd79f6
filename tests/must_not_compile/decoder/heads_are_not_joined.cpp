// expect: neither_operand_has_all_axes
#include <ein/ein.hpp>

#include "decoder.hpp"

int main() {
  using namespace decoder;
#ifdef MISTAKE
  const auto y = x + attended(q, keys, values);
#else
  const auto y = x + einsum<"b h s d, h d m -> b s m">(attended(q, keys, values), w.output);
#endif
  return y.shape() == ein::Shape{3, 5, 8} ? 0 : 1;
}
