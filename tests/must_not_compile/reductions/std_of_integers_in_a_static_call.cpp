// expect: reduction_wants_a_floating_point_dtype
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Int<"b c"> x = ein::ones({2, 4}, ein::DType::i32);
#ifdef MISTAKE
  const auto y = ein::reduce(x, "b c -> b"_p, "std");
#else
  const auto y = ein::reduce(x.to(ein::DType::f32), "b c -> b"_p, "std");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
