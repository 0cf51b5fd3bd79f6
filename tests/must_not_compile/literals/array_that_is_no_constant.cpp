// expect: constant expression
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const char text[] = "b c -> c b";
  const auto y = ein::rearrange(x, text);
#else
  static constexpr char text[] = "b c -> c b";
  const auto y = ein::rearrange(x, text);
#endif
  return y.shape() == ein::Shape{4, 2} ? 0 : 1;
}
