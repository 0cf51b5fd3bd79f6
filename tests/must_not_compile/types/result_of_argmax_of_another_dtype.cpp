// expect: the two types differ in dtype
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch seq vocab"> x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const ein::Float<"batch seq"> y = ein::argmax<"b s [v]">(x);
#else
  const ein::Long<"batch seq"> y = ein::argmax<"b s [v]">(x);
#endif
  return y.shape() == ein::Shape{2, 3} ? 0 : 1;
}
