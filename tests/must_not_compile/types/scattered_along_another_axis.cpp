// expect: axis_has_two_types
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch seq dim"> x = ein::ones({2, 3, 4});
  const ein::Long<"batch place"> at = ein::zeros({2, 3}, ein::DType::i64);
#ifdef MISTAKE
  const auto y = ein::scatter_add<"b s d, b s -> b [v] d">(x, at, "v"_a = 5);
#else
  const auto y = ein::scatter_add<"b s d, b p -> b [v] d">(x, at, "v"_a = 5);
#endif
  return y.shape() == ein::Shape{2, 5, 4} ? 0 : 1;
}
