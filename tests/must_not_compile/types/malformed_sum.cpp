// expect: type_is_malformed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
#ifdef MISTAKE
  const ein::Float<"n n+"> x = ein::ones({2, 3});
#else
  const ein::Float<"n n+1"> x = ein::ones({2, 3});
#endif
  return x.rank() == 2 ? 0 : 1;
}
