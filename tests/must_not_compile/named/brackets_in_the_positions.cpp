// expect: brackets_are_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor i = ein::zeros({2}, ein::DType::i64);
#ifdef MISTAKE
  const auto y = ein::gather(x, i, "v d, [b] -> b d");
#else
  const auto y = ein::gather(x, i, "[v] d, b -> b d");
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
