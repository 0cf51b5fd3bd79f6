// expect: brace_has_more_than_one_unknown_size
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::reduce(x, "{t + k} -> t", "max");
#else
  const auto y = ein::reduce(x, "{t + k} -> t", "max", "k"_a = 3);
#endif
  return y.shape() == ein::Shape{6} ? 0 : 1;
}
