// expect: brace_is_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::repeat(x, "{2*t} -> t 2");
#else
  const auto y = ein::repeat(x, "t -> t 2");
#endif
  return y.shape() == ein::Shape{8, 2} ? 0 : 1;
}
