// expect: no axis of the type, or more than one, has this name
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch hidden"> x = ein::ones({2, 3});
#ifdef MISTAKE
  const auto y = x.at<"seq">(0);
#else
  const auto y = x.at<"hidden">(0);
#endif
  return y.rank() == 1 ? 0 : 1;
}
