// expect: piece_is_no_axis
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::einsum(x, "(a + _) c -> c");
#else
  const auto made = ein::einsum(x, "(a + b) c -> c");
#endif
  return made.shape() == ein::Shape{2} ? 0 : 1;
}
