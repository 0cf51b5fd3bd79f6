// expect: ellipsis_is_repeated
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
#ifdef MISTAKE
  const ein::Float<"*batch c ..."> x = ein::ones({2, 4});
#else
  const ein::Float<"*batch c"> x = ein::ones({2, 4});
#endif
  return x.rank() == 2 ? 0 : 1;
}
