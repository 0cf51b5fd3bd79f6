// expect: neither_operand_has_all_axes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b s"> x = ein::ones({2, 3});
  const ein::Bool<"heads"> test = ein::ones({5}).to(ein::DType::boolean);
#ifdef MISTAKE
  const auto z = ein::where(test, x, 0.0);
#else
  const auto z = ein::where(x > 0, x, 0.0);
#endif
  return z.shape() == x.shape() && test.rank() == 1 ? 0 : 1;
}
