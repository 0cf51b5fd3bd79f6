// expect: mesh_axis_is_missing
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "b@ data s -> s b");
#else
  const auto y = ein::rearrange(x, "b@data s -> s b");
#endif
  return y.shape() == ein::Shape{4, 2} ? 0 : 1;
}
