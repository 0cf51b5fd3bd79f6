// expect: two_axes_in_brackets_are_wanted
#include <ein/ein.hpp>

int main() {
  const ein::Tensor x = ein::ones({2, 4, 4});
#ifdef MISTAKE
  const auto y = ein::tril(x, "b i [j]");
#else
  const auto y = ein::tril(x, "b [i j]");
#endif
  return y.shape() == ein::Shape{2, 4, 4} ? 0 : 1;
}
