// expect: axis_of_the_input_is_lost
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor i = ein::zeros({2}, ein::DType::i64);
#ifdef MISTAKE
  const auto y = ein::gather(x, i, "[v] d, b -> b");
#else
  const auto y = ein::gather(x, i, "[v] d, b -> d b");
#endif
  return y.shape() == ein::Shape{4, 2} ? 0 : 1;
}
