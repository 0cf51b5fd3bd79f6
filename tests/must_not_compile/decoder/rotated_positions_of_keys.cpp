// expect: axis_has_two_types
#include <ein/ein.hpp>

#include "decoder.hpp"

int main() {
  using namespace decoder;
  const auto turns = rotations(8, 4, 10000);
  const Long<"keys"> positions = ein::arange(5);
  const auto here = gather<"[v] k p q, s -> s k p q">(turns, positions);
  const auto of_queries = rearrange<"b h s (pair p) -> b h s pair p">(q, "p"_a = 2);
  const auto of_keys = of_queries.rename<"seq", "keys">();
#ifdef MISTAKE
  const auto y = einsum<"b h s k p, s k p q -> b h s k q">(of_queries, here);
#else
  const auto y = einsum<"b h s k p, s k p q -> b h s k q">(of_keys, here);
#endif
  return y.shape() == ein::Shape{3, 2, 5, 2, 2} ? 0 : 1;
}
