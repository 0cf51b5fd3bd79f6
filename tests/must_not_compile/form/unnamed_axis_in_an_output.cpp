// expect: unnamed_axis_is_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::einsum(x, "b _ -> b _");
#else
  const auto y = ein::einsum(x, "b _ -> b");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
