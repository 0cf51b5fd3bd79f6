// expect: a reduction is a string literal
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Tensor x = ein::ones({2, 4});
  const std::string name = "max";
#ifdef MISTAKE
  const auto y = ein::reduce(x, "b c -> b", name);
#else
  const auto y = ein::reduce(x, "b c -> b", ein::runtime(name));
#endif
  return y.shape() == ein::Shape{2} ? 0 : 1;
}
