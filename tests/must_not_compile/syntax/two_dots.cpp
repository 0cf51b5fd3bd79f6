// expect: ellipsis_is_not_three_dots
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto y = ein::reduce(x, "b .. -> b", "sum");
#else
  const auto y = ein::reduce(x, "b ... -> b", "sum");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
