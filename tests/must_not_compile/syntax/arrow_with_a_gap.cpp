// expect: arrow_is_malformed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b c - > c b");
#else
  const auto y = ein::rearrange(x, "b c -> c b");
#endif
  return y.shape() == ein::Shape{4, 2} ? 0 : 1;
}
