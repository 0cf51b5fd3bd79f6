// expect: a name stands at another place in the two types
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"vocab dim"> table = ein::ones({4, 5});
  const ein::Long<"batch seq"> words = ein::zeros({2, 3}, ein::DType::i64);
#ifdef MISTAKE
  const ein::Float<"seq batch dim"> y = ein::gather<"[v] d, b s -> b s d">(table, words);
#else
  const ein::Float<"seq batch dim"> y = ein::gather<"[v] d, b s -> s b d">(table, words);
#endif
  return y.shape() == ein::Shape{3, 2, 5} ? 0 : 1;
}
