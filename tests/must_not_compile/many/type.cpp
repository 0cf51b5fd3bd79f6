// expect: axis_has_two_sizes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Typed<float, "n=2 m=3 c=4"> x(ein::ones({2, 3, 4}));
  const ein::Typed<float, "n=2 k=5"> wrong(ein::ones({2, 5}));
  const ein::Typed<float, "n=2 m=3"> right(ein::ones({2, 3}));
#ifdef MISTAKE
  const auto made = ein::einsum(x, wrong, "*b c, *b -> c"_p);
#else
  const auto made = ein::einsum(x, right, "*b c, *b -> c"_p);
#endif
  return made.shape() == ein::Shape{4} ? 0 : 1;
}
