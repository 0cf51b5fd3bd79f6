// expect: axis_has_two_types
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const auto y = ein::gather<"[v] c, b c -> b c">(w.words, tokens);
#else
  const auto y = ein::gather<"[v] c, b s -> b s c">(w.words, tokens);
#endif
  return y.shape() == ein::Shape{3, 5, 8} ? 0 : 1;
}
