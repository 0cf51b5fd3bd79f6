// expect: group_has_more_than_one_unknown_size
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::softmax(x, "b (h [d])");
#else
  const auto y = ein::softmax(x, "b (h [d])", "h"_a = 2);
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
