// expect: axis_is_summed_alone
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3}), w = ein::ones({3}), y = ein::zeros({2});
#ifdef MISTAKE
  ein::einsum_into(y, x, w, "b h, k -> b");
#else
  ein::einsum_into(y, x, w, "b h, h -> b");
#endif
  return y.at({1}).item() == 3 ? 0 : 1;
}
