// expect: axis_names_are_glued
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const ein::Tensor w = ein::ones({4, 5});
#ifdef MISTAKE
  const auto y = ein::einsum(x, w, "ij,jk->ik");
#else
  const auto y = ein::einsum(x, w, "i j, j k -> i k");
#endif
  return y.shape() == ein::Shape{2, 5} ? 0 : 1;
}
