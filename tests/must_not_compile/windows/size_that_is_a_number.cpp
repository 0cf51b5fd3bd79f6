// expect: index_is_malformed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "t, k -> {t + k : 8}");
#else
  const auto y = ein::einsum(x, w, "t, k -> {t + k : n}", "n"_a = 8);
#endif
  return y.shape() == ein::Shape{8} ? 0 : 1;
}
