// expect: brace_is_inside_a_group
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::reduce(x, "({t} 2) -> t", "sum");
#else
  const auto y = ein::reduce(x, "(t 2) -> t", "sum");
#endif
  return y.shape() == ein::Shape{4} ? 0 : 1;
}
