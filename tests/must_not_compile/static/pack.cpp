// expect: packed_axes_are_missing
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const std::vector<ein::Tensor> xs = {ein::ones({2, 3}), ein::ones({2})};
#ifdef MISTAKE
  const auto y = ein::pack(xs, "b c"_p).tensor;
#else
  const auto y = ein::pack(xs, "b *"_p).tensor;
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
