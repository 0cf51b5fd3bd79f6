// expect: axis_has_two_types
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch keys"> x = ein::ones({2, 3});
#ifdef MISTAKE
  const auto y = ein::softmax(x, "keys [batch]");
#else
  const auto y = ein::softmax(x, "batch [keys]");
#endif
  return y.shape() == x.shape() ? 0 : 1;
}
