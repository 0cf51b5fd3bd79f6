// expect: axis_has_two_sizes
#include <ein/ein.hpp>
#include <ein/nn.hpp>

int main() {
  namespace nn = ein::nn;
  const nn::Named<nn::Linear, "... dim=8 -> ... wide"> up(8, 32);
  const nn::Named<nn::Linear, "... dim=32 -> ... narrow"> down(32, 8);
  const ein::Float<"batch dim=8"> x = ein::ones({2, 8});
#ifdef MISTAKE
  const auto y = down(x);
#else
  const auto y = down(up(x));
#endif
  return y.shape() == ein::Shape{2, 8} ? 0 : 1;
}
