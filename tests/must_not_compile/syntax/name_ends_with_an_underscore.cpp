// expect: axis_name_begins_or_ends_with_underscore
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b c_ -> c_ b");
#else
  const auto y = ein::rearrange(x, "b c_1 -> c_1 b");
#endif
  return y.shape() == ein::Shape{4, 2} ? 0 : 1;
}
