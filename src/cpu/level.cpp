#include "cpu/level.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <ein/error.hpp>
#include "tensor/fork.hpp"

// The instruction sets of this build: a line EIN_LEVEL_OF(name) each, the lowest first.
#define EIN_LEVEL_OF(name)                        \
  namespace ein::host::name {                     \
  extern const Level level;                       \
  extern const Bf16Products* const bf16_products; \
  }
#include "ein_levels.hpp"
#undef EIN_LEVEL_OF

namespace ein::host {
namespace {

/// Those of `features` that this processor lacks.
std::string missing([[maybe_unused]] const char* const* features) {
  std::string missing;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const struct {
    std::string_view name;
    bool is_here;
  } known[] = {
#define EIN_FEATURE(macro, name) {name, __builtin_cpu_supports(name) != 0},
#include "cpu/level/features.hpp"
  };
  for (; *features; ++features) {
    for (const auto& [name, is_here] : known) {
      if (name == *features && !is_here)
        missing += (missing.empty() ? "" : " ") + std::string(name);
    }
  }
#endif
  return missing;
}

struct Chosen {
  const Level* level;
  const Bf16Products* bf16;
};

std::vector<Chosen> all_levels() {
  return {
#define EIN_LEVEL_OF(name) {&name::level, name::bf16_products},
#include "ein_levels.hpp"
#undef EIN_LEVEL_OF
  };
}

/// The best that isa() allows; where the build has none so low, its lowest.
Chosen choose_level() {
  const std::vector<Chosen> all = all_levels();
  Chosen chosen = all[0];
  for (const Chosen& other : all) {
    if (other.level->isa <= isa()) chosen = other;
  }
  if (const std::string lacks = missing(chosen.level->features); !lacks.empty()) {
    throw Error(
        ErrorKind::device,
        "this processor lacks " + lacks +
            ", which this build of ein uses\n"
            "  help: build ein with EIN_NATIVE=OFF, for any processor of this architecture");
  }
  return chosen;
}

const Chosen& chosen() {
  return made_once([] { return choose_level(); });
}

}  // namespace

const Level& level() { return *chosen().level; }
std::vector<const Level*> levels_here() {
  std::vector<const Level*> here;
  for (const Chosen& one : all_levels()) {
    if (missing(one.level->features).empty()) here.push_back(one.level);
  }
  return here;
}
const Bf16Products* bf16_products() { return isa() == Isa::v4_bf16 ? chosen().bf16 : nullptr; }

}  // namespace ein::host
