// expect: axis_has_two_types
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const auto y = ein::softmax(scores, "batch heads keys [seq]");
#else
  const auto y = ein::softmax(scores, "batch heads seq [keys]");
#endif
  return y.shape() == ein::Shape{3, 2, 5, 5} ? 0 : 1;
}
