// expect: brackets_are_inside_a_group
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::softmax(x, "b (h [k])");
#else
  const auto y = ein::softmax(x, "b [k]");
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
