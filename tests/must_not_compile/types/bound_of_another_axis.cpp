// expect: neither_operand_has_all_axes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch hidden"> x = ein::ones({2, 3});
  const ein::Float<"seq"> other = ein::ones({3});
  const ein::Float<"hidden"> low = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::clamp(x, other, 2);
#else
  const auto y = ein::clamp(x, low, 2);
#endif
  return y.shape() == x.shape() ? 0 : 1;
}
