// expect: group_is_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto sizes = ein::parse_shape(x, "b (h w)");
#else
  const auto sizes = ein::parse_shape(x, "b hw");
#endif
  return sizes["hw"] == 4 ? 0 : 1;
}
