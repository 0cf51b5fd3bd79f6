// expect: types_are_too_long
#include <ein/ein.hpp>

#define LONG(name)                                                                            \
  name "_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_of" \
       "_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_of"

int main() {
#ifdef MISTAKE
  const ein::Float<LONG("b") " " LONG("s") " " LONG("c") " " LONG("d")> x = ein::ones({1, 2, 3, 4});
  const auto y = x + x;
#else
  const ein::Float<LONG("b") " " LONG("s") " c d"> x = ein::ones({1, 2, 3, 4});
  const auto y = x + x;
#endif
  return y.shape() == x.shape() ? 0 : 1;
}
