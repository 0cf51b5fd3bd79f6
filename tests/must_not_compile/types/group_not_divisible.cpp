// expect: group_cannot_be_split_evenly
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b c=10"> x = ein::ones({2, 10});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b (h d) -> b h d", "h"_a = ein::size_c<3>);
#else
  const auto y = ein::rearrange(x, "b (h d) -> b h d", "h"_a = ein::size_c<5>);
#endif
  return y.shape() == ein::Shape{2, 5, 2} ? 0 : 1;
}
