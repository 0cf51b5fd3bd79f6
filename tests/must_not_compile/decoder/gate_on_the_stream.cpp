// expect: neither_operand_has_all_axes
#include <ein/ein.hpp>

#include "decoder.hpp"

int main() {
  using namespace decoder;
  const auto gate = einsum<"b s m, m f -> b s f">(x, w.gate);
#ifdef MISTAKE
  const auto y = x * gate;
#else
  const auto y = einsum<"b s m, m f -> b s f">(x, w.up) * gate;
#endif
  return y.shape() == ein::Shape{3, 5, 16} ? 0 : 1;
}
