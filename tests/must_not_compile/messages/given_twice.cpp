// expect: repeat: the size of axis 'k' is given twice: 2 and 3
// expect:   b c -> b c k
// expect:              ^
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::repeat<"b c -> b c k">(x, "k"_a = ein::size_c<2>, "k"_a = ein::size_c<3>);
#else
  const auto y = ein::repeat<"b c -> b c k">(x, "k"_a = ein::size_c<2>);
#endif
  return y.shape() == ein::Shape{2, 4, 2} ? 0 : 1;
}
