// expect: operand_has_another_rank_than_the_pattern
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch seq hidden"> x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b s -> s b");
#else
  const auto y = ein::rearrange(x, "b s h -> s b h");
#endif
  return y.shape() == ein::Shape{3, 2, 4} ? 0 : 1;
}
