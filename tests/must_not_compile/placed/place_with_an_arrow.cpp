// expect: arrow_is_not_wanted
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  using Pattern = ein::PatternFor<ein::Operation::place, ein::detail::Types<ein::Tensor>>;
#ifdef MISTAKE
  const Pattern pattern = "b -> b@x";
#else
  const Pattern pattern = "b@x";
#endif
  return pattern.is_checked() ? 0 : 1;
}
