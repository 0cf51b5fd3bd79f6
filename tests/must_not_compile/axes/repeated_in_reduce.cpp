// expect: axis_is_repeated
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto y = ein::reduce(x, "b c c -> b", "sum");
#else
  const auto y = ein::reduce(x, "b c1 c2 -> b", "sum");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
