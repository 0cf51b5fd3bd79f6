// expect: rows_and_columns_in_brackets_are_wanted
#include <ein/ein.hpp>

int main() {
  const ein::Tensor m = ein::eye(3);
#ifdef MISTAKE
  const auto y = ein::inverse(m, "i [j]");
#else
  const auto y = ein::inverse(m, "[i j]");
#endif
  return y.shape() == ein::Shape{3, 3} ? 0 : 1;
}
