// expect: only_a_named_axis_is_placed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::repeat(x, "b s -> b s 3@data");
#else
  const auto y = ein::repeat(x, "b s -> b s k@data", "k"_a = 3);
#endif
  return y.shape() == ein::Shape{2, 4, 3} ? 0 : 1;
}
