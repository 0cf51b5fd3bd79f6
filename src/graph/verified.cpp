#include "graph/verified.hpp"

#include "tensor/environment.hpp"
#include "tensor/fork.hpp"

namespace ein {

bool verifies_passes() {
#ifdef NDEBUG
  return made_once([] { return !environment(Variable::verify).empty(); });
#else
  return true;
#endif
}

}  // namespace ein
