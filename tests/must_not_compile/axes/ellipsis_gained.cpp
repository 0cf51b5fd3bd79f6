// expect: ellipsis_of_the_output_is_in_no_input
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto y = ein::reduce(x, "b h w -> b ...", "mean");
#else
  const auto y = ein::reduce(x, "b ... w -> b ...", "mean");
#endif
  return y.shape() == ein::Shape{2, 3} ? 0 : 1;
}
