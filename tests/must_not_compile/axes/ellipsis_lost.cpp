// expect: ellipsis_of_the_input_is_lost
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "... c -> c");
#else
  const auto y = ein::rearrange(x, "... c -> c ...");
#endif
  return y.shape() == ein::Shape{4, 2, 3} ? 0 : 1;
}
