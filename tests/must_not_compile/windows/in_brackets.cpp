// expect: brace_is_inside_brackets
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::softmax(x, "[{t}]");
#else
  const auto y = ein::softmax(x, "[t]");
#endif
  return y.shape() == ein::Shape{8} ? 0 : 1;
}
