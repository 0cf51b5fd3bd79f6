// expect: ellipsis_is_repeated
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 3, 4});
#ifdef MISTAKE
  const auto y = ein::reduce(x, "... c ... -> c", "sum");
#else
  const auto y = ein::reduce(x, "... c -> c", "sum");
#endif
  return y.shape() == ein::Shape{4} ? 0 : 1;
}
