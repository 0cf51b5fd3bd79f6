// expect: ellipsis_is_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const std::vector<ein::Shape> shapes = {{3}, {}};
#ifdef MISTAKE
  const auto parts = ein::unpack(x, shapes, "... *");
#else
  const auto parts = ein::unpack(x, shapes, "b *");
#endif
  return parts[1].shape() == ein::Shape{2} ? 0 : 1;
}
