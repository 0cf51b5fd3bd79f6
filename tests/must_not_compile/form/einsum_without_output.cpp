// expect: arrow_is_missing
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "b c, c d");
#else
  const auto y = ein::einsum(x, w, "b c, c d -> b d");
#endif
  return y.shape() == ein::Shape{2, 5} ? 0 : 1;
}
