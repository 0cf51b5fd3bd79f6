// expect: the two types differ in the size of an axis
#include <ein/ein.hpp>
using namespace ein::literals;

static ein::Tensor first(const ein::Float<"batch hidden=32">& x) { return x[0]; }

int main() {
  const ein::Float<"batch hidden=64"> x = ein::ones({2, 64});
#ifdef MISTAKE
  const auto y = first(x);
#else
  const auto y = first(x.reshape({4, 32}));
#endif
  return y.shape() == ein::Shape{32} ? 0 : 1;
}
