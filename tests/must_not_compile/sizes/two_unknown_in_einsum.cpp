// expect: group_has_more_than_one_unknown_size
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor w = ein::ones({2, 5});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "b (i j), k n -> b i j n");
#else
  const auto y = ein::einsum(x, w, "b (i j), i n -> b j n");
#endif
  return y.shape() == ein::Shape{2, 2, 5} ? 0 : 1;
}
