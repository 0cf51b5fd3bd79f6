// expect: sum_is_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::repeat(x, "(a + b) c -> a b c", "a"_a = 2);
#else
  const auto made = ein::repeat(x, "(a b) c -> a b c", "a"_a = 2);
#endif
  return made.shape() == ein::Shape{2, 3, 2} ? 0 : 1;
}
