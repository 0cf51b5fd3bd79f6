// expect: a name stands at another place in the two types
#include <ein/ein.hpp>
#include <ein/nn.hpp>

int main() {
  const ein::nn::Named<ein::nn::Linear, "batch dim -> batch wide"> up(8, 32);
  const ein::Float<"batch dim"> x = ein::ones({2, 8});
#ifdef MISTAKE
  const ein::Float<"wide batch"> y = up(x);
#else
  const ein::Float<"batch wide"> y = up(x);
#endif
  return y.shape() == ein::Shape{2, 32} ? 0 : 1;
}
