// expect: arrow_is_not_wanted
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto sizes = ein::parse_shape(x, "b h w -> h w");
#else
  const auto sizes = ein::parse_shape(x, "_ h w");
#endif
  return sizes["h"] == 3 && sizes["w"] == 4 ? 0 : 1;
}
