// expect: positions are integers
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"vocab dim"> table = ein::ones({4, 5});
  const ein::Float<"batch seq"> words = ein::zeros({2, 3});
#ifdef MISTAKE
  const auto y = ein::gather(table, words, "[v] d, b s -> b s d"_p);
#else
  const auto y = ein::gather(table, words.to<std::int64_t>(), "[v] d, b s -> b s d"_p);
#endif
  return y.shape() == ein::Shape{2, 3, 5} ? 0 : 1;
}
