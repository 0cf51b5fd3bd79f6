// expect: einsum: 's' has two names by the operands' types
// expect:   b s, b s -> b
// expect:     ^    ^
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch seq"> q = ein::ones({2, 4});
  const ein::Float<"batch heads"> k = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::einsum(q, k, "b s, b s -> b"_p);
#else
  const auto y = ein::einsum(q, k, "b s, b h -> b s h"_p);
#endif
  return y.shape() == ein::Shape{2, 4, 4} ? 0 : 1;
}
