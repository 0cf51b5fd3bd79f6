// expect: axis_of_the_input_is_lost
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "{t + k} -> t", "k"_a = 3);
#else
  const auto y = ein::rearrange(x, "{t + k} -> t k", "k"_a = 3);
#endif
  return y.shape() == ein::Shape{6, 3} ? 0 : 1;
}
