// expect: rearrange: unexpected character U+007F
// expect:    b c?-> @ b
// expect:       ^
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
#ifdef MISTAKE
  const auto y = ein::rearrange<"\tb c\x7F-> @ b">(x);
#else
  const auto y = ein::rearrange<"\tb c\n-> c b">(x);
#endif
  return y.shape() == ein::Shape{4, 2} ? 0 : 1;
}
