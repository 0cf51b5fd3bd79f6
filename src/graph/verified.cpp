#include "graph/verified.hpp"

#include <cstdlib>

#include "tensor/fork.hpp"

namespace ein {

bool verifies_passes() {
#ifdef NDEBUG
  return made_once([] { return std::getenv("EIN_VERIFY") != nullptr; });
#else
  return true;
#endif
}

}  // namespace ein
