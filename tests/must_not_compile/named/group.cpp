// expect: group_is_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::layer_norm(x, "b (h w) [c]");
#else
  const auto y = ein::layer_norm(x, "b [c]");
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
