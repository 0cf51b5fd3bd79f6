// expect: axis_of_the_output_is_in_no_input
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::reduce(x, "b c -> b d", "sum");
#else
  const auto y = ein::reduce(x, "b c -> b", "sum");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
