#include "graph/verified.hpp"

#include <cstdlib>

namespace ein {
namespace {

#ifdef NDEBUG
const bool is_wanted = std::getenv("EIN_VERIFY") != nullptr;
#else
const bool is_wanted = true;
#endif

}  // namespace

bool verifies_passes() { return is_wanted; }

}  // namespace ein
