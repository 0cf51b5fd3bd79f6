// expect: the two types differ in the size of an axis
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b c=4"> x = ein::ones({2, 4});
#ifdef MISTAKE
  const ein::Float<"b c=5"> y = x;
#else
  const ein::Float<"b c"> y = x;
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
