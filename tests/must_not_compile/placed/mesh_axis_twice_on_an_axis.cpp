// expect: mesh_axis_is_repeated
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::softmax(x, "b@x@x [s]");
#else
  const auto y = ein::softmax(x, "b@x@y [s]");
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
