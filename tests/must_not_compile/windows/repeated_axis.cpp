// expect: axis_is_repeated
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "{t + t} -> t");
#else
  const auto y = ein::rearrange(x, "{2*t} -> t");
#endif
  return y.shape() == ein::Shape{4} ? 0 : 1;
}
