// expect: a name stands at another place in the two types
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const Float<"seq batch hidden"> y = x + w.shift;
#else
  const Float<"batch seq hidden"> y = x + w.shift;
#endif
  return y.shape() == ein::Shape{3, 5, 8} ? 0 : 1;
}
