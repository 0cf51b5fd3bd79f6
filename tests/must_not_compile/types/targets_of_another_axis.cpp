// expect: axis_has_two_types
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  const ein::Float<"batch seq vocab"> x = ein::ones({2, 3, 4});
  const ein::Long<"batch place"> to = ein::zeros({2, 3}, ein::DType::i64);
  const ein::Long<"batch seq"> targets = ein::zeros({2, 3}, ein::DType::i64);
#ifdef MISTAKE
  const auto loss = ein::cross_entropy(x, to, "b s [v], b s");
#else
  const auto loss = ein::cross_entropy(x, targets, "b s [v], b s");
#endif
  return loss.rank() == 0 ? 0 : 1;
}
