// expect: mesh_axis_is_missing
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const ein::Float<"b s@=4"> y = x;
#else
  const ein::Float<"b s@x=4"> y = x;
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
