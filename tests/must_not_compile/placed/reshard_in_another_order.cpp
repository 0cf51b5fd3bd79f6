// expect: axes_are_in_another_order
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  using Pattern = ein::PatternFor<ein::Operation::reshard, ein::detail::Types<ein::Tensor>>;
#ifdef MISTAKE
  const Pattern pattern = "b@x s -> s b@x";
#else
  const Pattern pattern = "b@x s -> b s@x";
#endif
  return pattern.is_checked() ? 0 : 1;
}
