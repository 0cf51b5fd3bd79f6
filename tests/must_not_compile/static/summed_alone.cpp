// expect: axis_is_summed_alone
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch hidden"> x = ein::ones({2, 4});
  const ein::Float<"seq hidden"> y = ein::ones({3, 4});
#ifdef MISTAKE
  const auto sums = ein::einsum<"b h, s h -> b">(x, y);
#else
  const ein::Float<"batch"> sums = ein::einsum<"b h, _ h -> b">(x, y);
#endif
  return sums.shape() == ein::Shape{2} ? 0 : 1;
}
