// expect: reduction_wants_a_floating_point_dtype
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Int<"b c"> x = ein::ones({2, 4}, ein::DType::i32);
#ifdef MISTAKE
  const auto y = ein::reduce(x, "b c -> b", "mean");
#else
  const auto y = ein::reduce(x, "b c -> b", "sum");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
