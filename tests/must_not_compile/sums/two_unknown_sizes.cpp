// expect: sum_has_more_than_one_unknown_size
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({6, 2}), y = ein::ones({3, 2});
#ifdef MISTAKE
  const auto made = ein::rearrange(x, "(a + b) c -> (b + a) c");
#else
  const auto made = ein::rearrange(x, "(a + b) c -> (b + a) c", "b"_a = 1);
#endif
  return made.shape() == ein::Shape{6, 2} ? 0 : 1;
}
