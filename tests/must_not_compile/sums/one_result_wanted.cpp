// expect: call_has_one_result
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::rearrange(x, "(a + b) c -> a c, b c", "a"_a = 2);
#else
  const auto made = ein::rearrange(x, "(a + b) c -> a c, b c"_p, "a"_a = 2)[1];
#endif
  return made.shape() == ein::Shape{4, 2} ? 0 : 1;
}
