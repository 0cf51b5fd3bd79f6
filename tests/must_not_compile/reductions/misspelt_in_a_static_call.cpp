// expect: reduction_is_unknown
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::reduce<"b c -> b">(x, "avg");
#else
  const auto y = ein::reduce<"b c -> b">(x, "mean");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
