// expect: reduction_is_unknown
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::reduce(x, "b c -> b", "maximum");
#else
  const auto y = ein::reduce(x, "b c -> b", "max");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
