// expect: the two types place an axis differently
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b@data s"> x = ein::ones({2, 4});
#ifdef MISTAKE
  const ein::Float<"b s"> y = x;
#else
  const ein::Float<"b@data s"> y = x;
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
