// expect: mesh_axis_is_repeated
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const ein::Float<"b@x s@x"> y = x;
#else
  const ein::Float<"b@x s@y"> y = x;
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
