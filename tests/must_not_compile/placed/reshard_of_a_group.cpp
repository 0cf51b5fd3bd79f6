// expect: group_is_not_allowed
#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  using Pattern = ein::PatternFor<ein::Operation::reshard, ein::detail::Types<ein::Tensor>>;
#ifdef MISTAKE
  const Pattern pattern = "b (h d) -> b (h@x d)";
#else
  const Pattern pattern = "b h d -> b h@x d";
#endif
  return pattern.is_checked() ? 0 : 1;
}
