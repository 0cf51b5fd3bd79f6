// expect: sum_is_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::softmax(x, "([a] + b) c");
#else
  const auto made = ein::softmax(x, "[a] c");
#endif
  return made.shape() == ein::Shape{6, 2} ? 0 : 1;
}
