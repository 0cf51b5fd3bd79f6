// expect: the two types differ in their number of axes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b c"> x = ein::ones({2, 4});
#ifdef MISTAKE
  const ein::Float<"b c d"> y = x;
#else
  const ein::Float<"b ..."> y = x;
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
