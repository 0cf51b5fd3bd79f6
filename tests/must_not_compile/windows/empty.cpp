// expect: brace_is_empty
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({8}), w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "{}, k -> k");
#else
  const auto y = ein::einsum(x, w, "{2}, k -> k");
#endif
  return y.shape() == ein::Shape{3} ? 0 : 1;
}
