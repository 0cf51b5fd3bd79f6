// expect: the two types differ in the size of an axis
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch c=4"> x = ein::ones({2, 4});
#ifdef MISTAKE
  const ein::Float<"c=3 batch"> y = ein::rearrange<"b c -> c b">(x);
#else
  const ein::Float<"c=4 batch"> y = ein::rearrange<"b c -> c b">(x);
#endif
  return y.shape() == ein::Shape{4, 2} ? 0 : 1;
}
