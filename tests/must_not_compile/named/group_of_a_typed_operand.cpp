// expect: group_cannot_be_split_evenly
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch 8"> x = ein::ones({2, 8});
#ifdef MISTAKE
  const auto y = ein::softmax(x, "b (h=3 [d])");
#else
  const ein::Float<"batch 8"> y = ein::softmax(x, "b (h=4 [d])");
#endif
  return y.shape() == ein::Shape{2, 8} ? 0 : 1;
}
