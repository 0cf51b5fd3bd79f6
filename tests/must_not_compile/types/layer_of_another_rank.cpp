// expect: operand_has_another_rank_than_the_pattern
#include <ein/ein.hpp>
#include <ein/nn.hpp>

int main() {
  namespace nn = ein::nn;
  const nn::Named<nn::Linear, "batch dim -> batch wide"> of_rows(8, 32);
  const nn::Named<nn::Linear, "... dim -> ... wide"> of_any(8, 32);
  const ein::Float<"batch seq dim"> x = ein::ones({2, 3, 8});
#ifdef MISTAKE
  const auto y = of_rows(x);
#else
  const auto y = of_any(x);
#endif
  return y.shape() == ein::Shape{2, 3, 32} ? 0 : 1;
}
