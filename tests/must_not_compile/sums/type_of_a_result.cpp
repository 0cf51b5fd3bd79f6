// expect: another differently
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Typed<float, "b n d"> x(ein::ones({2, 6, 3}));
  const auto [q, k] = ein::rearrange(x, "b (q + k) d -> b q d, b k d"_p, "q"_a = 4);
#ifdef MISTAKE
  const ein::Typed<float, "b q d"> made = k;
#else
  const ein::Typed<float, "b q d"> made = q;
#endif
  return made.shape() == ein::Shape{2, 4, 3} ? 0 : 1;
}
