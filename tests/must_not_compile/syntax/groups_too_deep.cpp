// expect: groups_are_nested_too_deeply
#include <ein/ein.hpp>
using namespace ein::literals;

#define EIGHT(text) text text text text text text text text

int main() {
  const ein::Tensor x = ein::ones({4});
#ifdef MISTAKE
  const auto y = ein::rearrange(x, "a -> " EIGHT("((((") "( a )" EIGHT("))))"));
#else
  const auto y = ein::rearrange(x, "a -> " EIGHT("((((") "a" EIGHT("))))"));
#endif
  return y.shape() == ein::Shape{4} ? 0 : 1;
}
