// expect: axis_size_is_not_of_the_pattern
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch c=4"> x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::repeat<"b c -> b c k">(x, "k"_a = 2, "n"_a = 3);
#else
  const auto y = ein::repeat<"b c -> b c k">(x, "k"_a = 2);
#endif
  return y.shape() == ein::Shape{2, 4, 2} ? 0 : 1;
}
