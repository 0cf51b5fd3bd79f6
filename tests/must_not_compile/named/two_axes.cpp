// expect: one_axis_in_brackets_is_wanted
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::cumsum(x, "[b v]");
#else
  const auto y = ein::cumsum(x, "b [v]");
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
