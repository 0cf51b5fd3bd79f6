// expect: text_is_not_utf8
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b \xCF -> \xCF b");
#else
  const auto y = ein::rearrange(x, "b \xCF\x83 -> \xCF\x83 b");
#endif
  return y.shape() == ein::Shape{4, 2} ? 0 : 1;
}
