// expect: operands_have_different_dtypes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b c"> x = ein::ones({2, 4});
  const ein::Double<"c d"> w = ein::ones({4, 5}, ein::DType::f64);
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "b c, c d -> b d");
#else
  const auto y = ein::einsum(x, w.to(ein::DType::f32), "b c, c d -> b d");
#endif
  return y.shape() == ein::Shape{2, 5} ? 0 : 1;
}
