// expect: ellipsis_is_repeated
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4, 5});
  const std::vector<ein::Shape> shapes = {{3}, {}};
#ifdef MISTAKE
  const auto parts = ein::unpack(x, shapes, "... * ...");
#else
  const auto parts = ein::unpack(x, shapes, "... * c");
#endif
  return parts[1].shape() == ein::Shape{2, 5} ? 0 : 1;
}
