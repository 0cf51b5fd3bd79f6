// expect: einsum: axis names are glued together: write `i j, j k -> i k`
// expect:   ij,jk->ik
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto y = ein::einsum<"ij,jk->ik">(x, w);
#else
  const auto y = ein::einsum<"i j, j k -> i k">(x, w);
#endif
  return y.shape() == ein::Shape{2, 5} ? 0 : 1;
}
