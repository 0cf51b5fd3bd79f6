// expect: axis_has_two_types
#include <ein/ein.hpp>

#include "decoder.hpp"

int main() {
  using namespace decoder;
#ifdef MISTAKE
  const auto gate = einsum<"b s m, m f -> b s f">(x, w.down);
#else
  const auto gate = einsum<"b s m, m f -> b s f">(x, w.gate);
#endif
  return gate.shape() == ein::Shape{3, 5, 16} ? 0 : 1;
}
