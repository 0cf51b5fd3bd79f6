// expect: a pattern is a string literal
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor w = ein::ones({4, 5});
  const std::string text = "b c, c d -> b d";
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, text);
#else
  const auto y = ein::einsum(x, w, ein::runtime(text));
#endif
  return y.shape() == ein::Shape{2, 5} ? 0 : 1;
}
