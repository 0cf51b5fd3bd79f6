// expect: the two types differ in dtype
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b c"> x = ein::ones({2, 4});
#ifdef MISTAKE
  const ein::Double<"b c"> y = x;
#else
  const ein::Double<"b c"> y = x.to(ein::DType::f64);
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
