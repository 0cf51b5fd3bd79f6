// expect: operand_has_another_rank_than_the_pattern
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch seq vocab"> x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto y = ein::top_k<"b [v]">(x, 2);
#else
  const auto y = ein::top_k<"b s [v]">(x, 2);
#endif
  return y.values.shape() == ein::Shape{2, 3, 2} ? 0 : 1;
}
