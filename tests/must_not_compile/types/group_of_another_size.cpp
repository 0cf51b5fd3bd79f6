// expect: group_has_another_size_than_its_axes
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"b c=10"> x = ein::ones({2, 10});
#ifdef MISTAKE
  const auto y = ein::reduce(x, "b (4 2) -> b", "sum");
#else
  const auto y = ein::reduce(x, "b (5 2) -> b", "sum");
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
