// expect: type_is_malformed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
#ifdef MISTAKE
  const ein::Float<"batch, hidden"> x = ein::ones({2, 4});
#else
  const ein::Float<"batch hidden"> x = ein::ones({2, 4});
#endif
  return x.rank() == 2 ? 0 : 1;
}
