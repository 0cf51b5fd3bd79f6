// expect: one_axis_in_brackets_is_wanted
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4}), w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto made = ein::sort(x, "[*b] c").values;
#else
  const auto made = ein::sort(x, "*b [c]").values;
#endif
  return made.shape() == ein::Shape{2, 3, 4} ? 0 : 1;
}
