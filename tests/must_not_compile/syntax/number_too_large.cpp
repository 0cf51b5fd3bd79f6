// expect: number_is_too_large
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::repeat(x, "b c -> b c 9223372036854775808");
#else
  const auto y = ein::repeat(x, "b c -> b c 8");
#endif
  return y.shape() == ein::Shape{2, 4, 8} ? 0 : 1;
}
