// MPI without MPI, for tests of what calls the plug-in: two processes, of which this is the first,
// and whatever it starts is done at once. A call in a child of fork(), which MPI allows none, ends
// the child with exit code 44.
#include <unistd.h>

#include <cstdio>

#include "src/mesh/mpi/plugin.hpp"

namespace {

pid_t starter = 0;
int something = 0;

int succeed() {
  if (::getpid() != starter) ::_exit(44);
  return 0;
}
int begin(void** request) {
  *request = &something;
  return succeed();
}

const EinMpiFunctions functions = {
    ein_mpi_version,
    [](std::int32_t* rank, std::int32_t* size) {
      *rank = 0;
      *size = 2;
      starter = ::getpid();
      return 0;
    },
    succeed,
    [](const std::int32_t*, std::int32_t, void** group) { return begin(group); },
    [](void*) { return succeed(); },
    [](void*, std::int32_t, const void*, void*, std::int32_t, std::int32_t, std::int32_t,
       void** request) { return begin(request); },
    [](void*, const void*, std::int32_t, std::int32_t, std::int32_t, void** request) {
      return begin(request);
    },
    [](void*, void*, std::int32_t, std::int32_t, std::int32_t, void** request) {
      return begin(request);
    },
    [](void*, std::int32_t* is_done) {
      *is_done = 1;
      return succeed();
    },
    [](int code, char* text) { std::snprintf(text, 512, "error %d", code); }};

}  // namespace

extern "C" const EinMpiFunctions* ein_mpi_functions() { return &functions; }
