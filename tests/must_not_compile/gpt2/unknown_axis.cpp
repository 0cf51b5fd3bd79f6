// expect: no axis of the type, or more than one, has this name
#include "block.hpp"

int main() {
  using namespace gpt2;
#ifdef MISTAKE
  const auto y = x.at<"position">(0);
#else
  const auto y = x.at<"seq">(0);
#endif
  return y.shape() == ein::Shape{3, 8} ? 0 : 1;
}
