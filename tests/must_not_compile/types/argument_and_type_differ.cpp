// expect: axis_has_two_sizes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b c=4"> x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b c -> c b", "c"_a = ein::size_c<5>);
#else
  const auto y = ein::rearrange(x, "b c -> c b", "c"_a = ein::size_c<4>);
#endif
  return y.shape() == ein::Shape{4, 2} ? 0 : 1;
}
