// expect: group_has_more_than_one_unknown_size
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 12});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b (h w c) -> b h w c", "c"_a = 3);
#else
  const auto y = ein::rearrange(x, "b (h w c) -> b h w c", "c"_a = 3, "h"_a = 2);
#endif
  return y.shape() == ein::Shape{2, 2, 2, 3} ? 0 : 1;
}
