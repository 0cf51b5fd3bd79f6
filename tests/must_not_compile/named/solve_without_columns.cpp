// expect: columns_in_brackets_are_wanted
#include <ein/ein.hpp>

int main() {
  const ein::Tensor m = ein::eye(3);
#ifdef MISTAKE
  const auto x = ein::solve(m, ein::ones({3}), "[n m], [n] -> m");
#else
  const auto x = ein::solve(m, ein::ones({3}), "[n m], [n] -> [m]");
#endif
  return x.shape() == ein::Shape{3} ? 0 : 1;
}
