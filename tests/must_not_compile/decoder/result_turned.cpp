// expect: a name stands at another place in the two types
#include <ein/ein.hpp>

#include "decoder.hpp"

int main() {
  using namespace decoder;
#ifdef MISTAKE
  const Float<"seq batch d_model"> y = feed_forward(x, w);
#else
  const Float<"batch seq d_model"> y = feed_forward(x, w);
#endif
  return y.shape() == ein::Shape{3, 5, 8} ? 0 : 1;
}
