// expect: the two types differ in their number of axes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch c=4"> x = ein::ones({2, 4});
#ifdef MISTAKE
  const ein::Float<"batch c=4"> y = ein::reduce(x, "b c -> b"_p, "sum");
#else
  const ein::Float<"batch"> y = ein::reduce(x, "b c -> b"_p, "sum");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
