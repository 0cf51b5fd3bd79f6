// expect: axis_of_the_output_is_in_no_input
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const std::vector<ein::Tensor> xs = {ein::ones({2}), ein::ones({2})};
#ifdef MISTAKE
  const auto y = ein::einsum(xs, "a, b -> a c");
#else
  const auto y = ein::einsum(xs, "a, b -> a b");
#endif
  return y.shape() == ein::Shape{2, 2} ? 0 : 1;
}
