// expect: no axis of the type, or more than one, has this name
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch hidden"> x = ein::ones({2, 3});
#ifdef MISTAKE
  const auto n = x.size<"seq">();
#else
  const auto n = x.size<"hidden">();
#endif
  return n == 3 ? 0 : 1;
}
