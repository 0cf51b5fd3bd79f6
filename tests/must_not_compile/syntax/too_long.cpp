// expect: pattern_is_too_long
#include <ein/ein.hpp>
using namespace ein::literals;

#define TEN(text) text text text text text text text text text text

int main() {
  const ein::Tensor x = ein::ones({4});
#ifdef MISTAKE
  const auto y = ein::einsum(x, TEN(TEN(TEN(TEN(TEN("   "))))) "a -> a");
#else  // longer than compilers read: checked by the call
  const auto y = ein::einsum(x, TEN(TEN(TEN(TEN("  ")))) "a -> a");
#endif
  return y.shape() == ein::Shape{4} ? 0 : 1;
}
