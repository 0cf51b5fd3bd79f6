// expect: axis_of_the_input_is_lost
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch c=4"> x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b c -> b"_p);
#else
  const auto y = ein::rearrange(x, "b c -> (b c)"_p);
#endif
  return y.shape() == ein::Shape{8} ? 0 : 1;
}
