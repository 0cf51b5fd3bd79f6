// expect: axis_of_the_output_is_in_no_input
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor i = ein::zeros({2}, ein::DType::i64);
#ifdef MISTAKE
  const auto y = ein::cross_entropy(x, i, "b [v], b -> s");
#else
  const auto y = ein::cross_entropy(x, i, "b [v], b -> b");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
