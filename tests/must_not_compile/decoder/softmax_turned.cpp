// expect: axis_has_two_types
#include <ein/ein.hpp>

#include "decoder.hpp"

int main() {
  using namespace decoder;
  const Float<"batch keys"> scores = ein::ones({2, 3});
#ifdef MISTAKE
  const auto y = softmax(scores, "keys [batch]");
#else
  const auto y = softmax(scores, "batch [keys]");
#endif
  return y.shape() == ein::Shape{2, 3} ? 0 : 1;
}
