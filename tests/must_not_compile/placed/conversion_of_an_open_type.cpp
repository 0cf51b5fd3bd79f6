// expect: the two types place an axis differently
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"data", 1}});
  const ein::Float<"b@data s"> x = ein::place(ein::ones({2, 4}), mesh, "b@data s");
#ifdef MISTAKE
  const ein::Float<"b ..."> y = x;
#else
  const ein::Float<"b@data ..."> y = x;
#endif
  return y.shape() == ein::Shape{2, 4} ? 0 : 1;
}
