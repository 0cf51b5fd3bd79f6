// expect: axis_size_is_no_number
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 12});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b (h= 4 d) -> b h d");
#else
  const auto y = ein::rearrange(x, "b (h=4 d) -> b h d");
#endif
  return y.shape() == ein::Shape{2, 4, 3} ? 0 : 1;
}
