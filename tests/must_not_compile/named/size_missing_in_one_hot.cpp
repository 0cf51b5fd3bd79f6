// expect: axis_size_is_missing
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor i = ein::zeros({2}, ein::DType::i64);
#ifdef MISTAKE
  const auto y = ein::one_hot(i, "b -> b [v]");
#else
  const auto y = ein::one_hot(i, "b -> b [v]", "v"_a = 3);
#endif
  return y.shape() == ein::Shape{2, 3} ? 0 : 1;
}
