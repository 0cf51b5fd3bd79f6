// expect: axis_is_not_of_size_one
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b c=4"> x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b 1 -> b");
#else
  const auto y = ein::rearrange(x, "b c -> b c 1");
#endif
  return y.shape() == ein::Shape{2, 4, 1} ? 0 : 1;
}
