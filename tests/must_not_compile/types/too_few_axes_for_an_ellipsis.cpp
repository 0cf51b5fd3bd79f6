// expect: operand_has_another_rank_than_the_pattern
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"hidden"> x = ein::ones({4});
#ifdef MISTAKE
  const auto y = ein::reduce(x, "... s h -> ... h", "sum");
#else
  const auto y = ein::reduce(x, "... h -> ...", "sum");
#endif
  return y.shape() == ein::Shape{} ? 0 : 1;
}
