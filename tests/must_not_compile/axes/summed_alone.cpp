// expect: axis_is_summed_alone
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor q = ein::ones({2, 3, 4});
  const ein::Tensor k = ein::ones({2, 5, 4});
#ifdef MISTAKE
  const auto y = ein::einsum(q, k, "b s1 h, b s2 d -> b s1 s2");
#else
  const auto y = ein::einsum(q, k, "b s1 h, b s2 h -> b s1 s2");
#endif
  return y.shape() == ein::Shape{2, 3, 5} ? 0 : 1;
}
