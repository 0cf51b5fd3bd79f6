// expect: the dtype is of another kind
#include <ein/ein.hpp>
using namespace ein::literals;

ein::Tensor mean(const ein::Floating<"b s">& x) { return ein::reduce(x, "b s -> b", "mean"); }

int main() {
  const ein::Long<"b s"> x = ein::ones({2, 3}, ein::DType::i64);
#ifdef MISTAKE
  const auto y = mean(x);
#else
  const auto y = mean(x.to<float>());
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
