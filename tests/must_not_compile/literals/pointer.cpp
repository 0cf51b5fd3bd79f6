// expect: a pattern is a string literal
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const char* text = "b c -> c b";
#ifdef MISTAKE
  const auto y = ein::rearrange(x, text);
#else
  const auto y = ein::rearrange(x, ein::runtime(text));
#endif
  return y.shape() == ein::Shape{4, 2} ? 0 : 1;
}
