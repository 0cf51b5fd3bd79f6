// expect: axis_size_is_not_of_the_pattern
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::top_k(x, "b (heads [d])", 1, "head"_a = 2);
#else
  const auto y = ein::top_k(x, "b (heads [d])", 1, "heads"_a = 2);
#endif
  return y.values.shape() == ein::Shape{2, 2} ? 0 : 1;
}
