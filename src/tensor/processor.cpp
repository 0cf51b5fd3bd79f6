#include "tensor/processor.hpp"

#include <cstdio>
#include <string>
#include <string_view>

#include <ein/error.hpp>
#include "tensor/fork.hpp"

// What a static asmjit's `stderr` is renamed to (cmake/kernels.cmake).
extern "C" {
[[gnu::visibility("hidden")]] extern std::FILE* ein_stderr;
std::FILE* ein_stderr = stderr;
}

namespace ein::host {
namespace {

/// Those of `kernel_features` that this processor lacks.
std::string missing_features() {
  std::string missing;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const struct {
    std::string_view name;
    bool is_here;
  } known[] = {
#define EIN_FEATURE(macro, name) {name, __builtin_cpu_supports(name) != 0},
#include "tensor/kernel_features.hpp"
  };
  for (const char* const* feature = kernel_features; *feature; ++feature) {
    for (const auto& [name, is_here] : known) {
      if (name == *feature && !is_here) missing += (missing.empty() ? "" : " ") + std::string(name);
    }
  }
#endif
  return missing;
}

}  // namespace

void require_processor() {
  const std::string& missing = made_once([] { return missing_features(); });
  if (missing.empty()) return;
  throw Error(ErrorKind::device,
              "this processor lacks " + missing +
                  ", which this build of ein uses\n"
                  "  help: build ein with EIN_NATIVE=OFF, for any processor of this architecture");
}

}  // namespace ein::host
