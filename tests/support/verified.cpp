// In every program of tests, and in those that it starts: what a pass gives is verified
// (graph/after_pass.hpp), however the program was built and whoever runs it.
#include <cstdlib>

namespace {

// Before any initializer of a program's own.
[[gnu::constructor(101)]] void verify_what_passes_give() { setenv("EIN_VERIFY", "1", 1); }

}  // namespace
