// expect: packed_axes_are_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b * -> * b");
#else
  const auto y = ein::rearrange(x, "b ... -> ... b");
#endif
  return y.shape() == ein::Shape{3, 4, 2} ? 0 : 1;
}
