// expect: axis_is_repeated
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b c -> (b c) b");
#else
  const auto y = ein::rearrange(x, "b c -> (b c)");
#endif
  return y.shape() == ein::Shape{8} ? 0 : 1;
}
