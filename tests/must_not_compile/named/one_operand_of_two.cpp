// expect: number_of_operands_differs
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor i = ein::zeros({2}, ein::DType::i64);
#ifdef MISTAKE
  const auto y = ein::cross_entropy(x, i, "b [v]");
#else
  const auto y = ein::cross_entropy(x, i, "b [v], b");
#endif
  return y.shape() == ein::Shape{} ? 0 : 1;
}
