// expect: piece_is_no_axis
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4}), w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto made = ein::einsum(x, "(*a + b) c d -> d");
#else
  const auto made = ein::einsum(x, "(a + b) c d -> d");
#endif
  return made.shape() == ein::Shape{4} ? 0 : 1;
}
