// expect: the two types differ in their number of axes
#include <ein/ein.hpp>

#include "decoder.hpp"

namespace decoder {
#ifdef MISTAKE
inline Float<"batch seq"> normed(const Float<"batch seq d_model">& of) {
  return rms_norm(of, w.norm1, "b s [m]");
}
#else
inline Float<"batch seq d_model"> normed(const Float<"batch seq d_model">& of) {
  return rms_norm(of, w.norm1, "b s [m]");
}
#endif
}  // namespace decoder

int main() {
  using namespace decoder;
  return normed(x).shape() == ein::Shape{3, 5, 8} ? 0 : 1;
}
