// expect: piece_goes_nowhere
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::reduce(x, "(1 + a) c -> a c", "sum");
#else
  const auto made = ein::reduce(x, "(1 + a) c -> c", "sum");
#endif
  return made.shape() == ein::Shape{2} ? 0 : 1;
}
