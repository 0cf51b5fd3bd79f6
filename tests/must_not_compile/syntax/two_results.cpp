// expect: comma_after_the_arrow
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::einsum(x, "b c -> b, c");
#else
  const auto y = ein::einsum(x, "b c -> b");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
