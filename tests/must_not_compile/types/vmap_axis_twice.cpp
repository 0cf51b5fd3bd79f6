// expect: an argument's type has the axis twice
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const auto sum = [](const auto& x) { return ein::reduce(x, "i -> "_p, "sum"); };
  const ein::Float<"n n"> twice = ein::ones({3, 3});
  const ein::Float<"n m"> x = ein::ones({3, 3});
#ifdef MISTAKE
  const auto y = ein::vmap<"n">(sum)(twice);
#else
  const auto y = ein::vmap<"n">(sum)(x);
#endif
  return y.shape() == ein::Shape{3} ? 0 : 1;
}
