// expect: axis_name_begins_with_a_digit
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b 2c -> 2c b");
#else
  const auto y = ein::rearrange(x, "b c2 -> c2 b");
#endif
  return y.shape() == ein::Shape{4, 2} ? 0 : 1;
}
