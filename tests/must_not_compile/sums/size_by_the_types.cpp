// expect: sum_has_another_size_than_its_pieces
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Typed<float, "n=6 c"> t(ein::ones({6, 2}));
#ifdef MISTAKE
  const auto made = ein::rearrange(t, "(a + b) c -> (b + a) c", "a"_a = ein::size_c<7>);
#else
  const auto made = ein::rearrange(t, "(a + b) c -> (b + a) c", "a"_a = ein::size_c<4>);
#endif
  return made.shape() == ein::Shape{6, 2} ? 0 : 1;
}
