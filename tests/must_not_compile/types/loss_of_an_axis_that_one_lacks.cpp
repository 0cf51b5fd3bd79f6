// expect: an_operand_lacks_an_axis
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch hidden"> x = ein::ones({2, 3});
  const ein::Float<"hidden"> row = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::mse_loss(x, row);
#else
  const auto y = ein::mse_loss(x, ein::repeat<"h -> batch h">(row, "batch"_a = 2));
#endif
  return y.rank() == 0 ? 0 : 1;
}
