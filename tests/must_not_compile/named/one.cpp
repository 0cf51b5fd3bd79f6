// expect: number_is_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rms_norm(x, "b [1]");
#else
  const auto y = ein::rms_norm(x, "b [4]");
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
