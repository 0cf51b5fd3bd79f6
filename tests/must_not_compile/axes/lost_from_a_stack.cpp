// expect: axis_of_the_input_is_lost
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const std::vector<ein::Tensor> xs = {ein::ones({2}), ein::ones({2})};
#ifdef MISTAKE
  const auto y = ein::rearrange(xs, "n c -> n");
#else
  const auto y = ein::rearrange(xs, "n c -> c n");
#endif
  return y.shape() == ein::Shape{2, 2} ? 0 : 1;
}
