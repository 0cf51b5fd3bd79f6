// expect: axis_has_two_types
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"vocab dim"> table = ein::ones({4, 5});
  const ein::Long<"batch seq"> words = ein::zeros({2, 3}, ein::DType::i64);
#ifdef MISTAKE
  const auto y = ein::gather(table, words, "[dim] vocab, b s -> b s vocab");
#else
  const auto y = ein::gather(table, words, "[vocab] dim, b s -> b s dim");
#endif
  return y.shape() == ein::Shape{2, 3, 5} ? 0 : 1;
}
