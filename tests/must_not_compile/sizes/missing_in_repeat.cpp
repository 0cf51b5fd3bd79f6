// expect: axis_size_is_missing
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::repeat(x, "b c -> b (c k)");
#else
  const auto y = ein::repeat(x, "b c -> b (c k)", "k"_a = 2);
#endif
  return y.shape() == ein::Shape{2, 8} ? 0 : 1;
}
