// expect: brace_is_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::pack(std::array{x, x}, "{t} *").tensor;
#else
  const auto y = ein::pack(std::array{x, x}, "*").tensor;
#endif
  return y.shape() == ein::Shape{16} ? 0 : 1;
}
