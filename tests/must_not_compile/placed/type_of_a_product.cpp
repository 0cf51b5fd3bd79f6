// expect: only_a_named_axis_is_placed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const ein::Float<"b h*d@model"> y = x;
#else
  const ein::Float<"b hidden@model"> y = x;
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
