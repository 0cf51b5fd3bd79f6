// expect: axis_in_brackets_is_elsewhere
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor i = ein::zeros({2}, ein::DType::i64);
#ifdef MISTAKE
  const auto y = ein::scatter_add(x, i, "b d, b -> [d]", "d"_a = 3);
#else
  const auto y = ein::scatter_add(x, i, "b d, b -> [v]", "v"_a = 3);
#endif
  return y.shape() == ein::Shape{3} ? 0 : 1;
}
