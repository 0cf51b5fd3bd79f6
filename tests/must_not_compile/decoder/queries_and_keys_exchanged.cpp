// expect: the two types call some axes alike and another differently
#include <ein/ein.hpp>

#include "decoder.hpp"

int main() {
  using namespace decoder;
#ifdef MISTAKE
  const auto y = attended(keys, q, values);
#else
  const auto y = attended(q, keys, values);
#endif
  return y.shape() == ein::Shape{3, 2, 5, 4} ? 0 : 1;
}
