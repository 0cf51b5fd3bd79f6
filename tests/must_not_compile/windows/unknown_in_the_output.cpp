// expect: axis_of_the_output_is_in_no_input
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "t, k -> {t + j}");
#else
  const auto y = ein::einsum(x, w, "t, k -> {t + k}");
#endif
  return y.shape() == ein::Shape{10} ? 0 : 1;
}
