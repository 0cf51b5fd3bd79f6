// expect: number_is_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  using Pattern = ein::PatternFor<ein::Operation::place, ein::detail::Types<ein::Tensor>>;
#ifdef MISTAKE
  const Pattern pattern = "b@x 4";
#else
  const Pattern pattern = "b@x s";
#endif
  return pattern.is_checked() ? 0 : 1;
}
