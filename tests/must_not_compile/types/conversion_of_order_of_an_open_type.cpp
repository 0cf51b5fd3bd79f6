// expect: a name stands at another place in the two types
#include <ein/ein.hpp>

int main() {
  const ein::Float<"... batch seq"> x = ein::ones({2, 3});
#ifdef MISTAKE
  const ein::Float<"... seq batch"> y = x;
#else
  const ein::Float<"... seq batch"> y = ein::rearrange<"... b s -> ... s b">(x);
#endif
  return y.shape() == ein::Shape{3, 2} ? 0 : 1;
}
