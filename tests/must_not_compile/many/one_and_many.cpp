// expect: name_is_of_one_axis_and_of_many
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4}), w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto made = ein::einsum(x, w, "*b c, c d -> b d");
#else
  const auto made = ein::einsum(x, w, "*b c, c d -> *b d");
#endif
  return made.shape() == ein::Shape{2, 3, 5} ? 0 : 1;
}
