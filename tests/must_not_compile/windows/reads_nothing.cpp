// expect: brace_reads_nothing
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"n=8"> x = ein::ones({8});
  const ein::Float<"k=3"> w = ein::ones({3});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "{t + k + 6}, k -> t");
#else
  const auto y = ein::einsum(x, w, "{t + k + 5}, k -> t");
#endif
  return y.shape() == ein::Shape{1} ? 0 : 1;
}
