// expect: the two types differ in dtype
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch c=4"> x = ein::ones({2, 4});
#ifdef MISTAKE
  const ein::Double<"batch"> y = ein::einsum(x, "b c -> b"_p);
#else
  const ein::Float<"batch"> y = ein::einsum(x, "b c -> b"_p);
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
