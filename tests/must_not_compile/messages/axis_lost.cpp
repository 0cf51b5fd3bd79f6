// expect: rearrange: axis 'c' is lost: the output lacks it
// expect:   b c -> b
// expect:     ^
// expect:   help: reduce removes axes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b c -> b"_p);
#else
  const auto y = ein::rearrange(x, "b c -> (b c)"_p);
#endif
  return y.shape() == ein::Shape{8} ? 0 : 1;
}
