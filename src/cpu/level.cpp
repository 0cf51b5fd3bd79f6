#include "cpu/level.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <ein/error.hpp>
#include "machine/fork.hpp"
#include "size/ask.hpp"

// The instruction sets of this build, the lowest first: a line EIN_LEVEL_OF(name) of each that has
// all kernels, a line EIN_BF16_OF(name) of each that has products of bf16.
#define EIN_LEVEL_OF(name)    \
  namespace ein::host::name { \
  extern const Level level;   \
  }
#define EIN_BF16_OF(name)                  \
  namespace ein::host::name {              \
  extern const Bf16Products bf16_products; \
  }
#include "ein_levels.hpp"
#undef EIN_LEVEL_OF
#undef EIN_BF16_OF

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

constexpr const Level* all_levels[] = {
#define EIN_LEVEL_OF(name) &name::level,
#define EIN_BF16_OF(name)
#include "ein_levels.hpp"
#undef EIN_LEVEL_OF
#undef EIN_BF16_OF
};
constexpr const Bf16Products* all_bf16_products[] = {
#define EIN_LEVEL_OF(name)
#define EIN_BF16_OF(name) &name::bf16_products,
#include "ein_levels.hpp"
#undef EIN_LEVEL_OF
#undef EIN_BF16_OF
};

/// The best that isa() allows and that `is_wanted`; where the build has none so low, its lowest.
template <class Table, std::size_t N, class IsWanted>
const Table* best_of(const Table* const (&all)[N], const IsWanted& is_wanted) {
  const Table* best = all[0];
  for (const Table* other : all) {
    if (other->isa <= isa() && is_wanted(*other)) best = other;
  }
  return best;
}
template <class Table, std::size_t N>
const Table* best_of(const Table* const (&all)[N]) {
  return best_of(all, [](const Table&) { return true; });
}

const Level* choose_level() {
  const Level* const level = best_of(all_levels);
  if (const std::string lacks = missing(level->features); !lacks.empty()) {
    throw Error(
        ErrorKind::device,
        "this processor lacks " + lacks +
            ", which this build of ein uses\n"
            "  help: build ein with EIN_NATIVE=OFF, for any processor of this architecture");
  }
  return level;
}

}  // namespace

const Level& level() {
  return *made_once([] { return choose_level(); });
}
std::vector<const Level*> levels_here() {
  std::vector<const Level*> here;
  for (const Level* level : all_levels) {
    if (missing(level->features).empty()) here.push_back(level);
  }
  return here;
}
const Bf16Products& bf16_products() {
  return made_once([] {
    Bf16Products chosen = *best_of(all_bf16_products);
    const auto has_few_rows = [](const Bf16Products& products) {
      return products.few_rows.to_f32 && !products.in_pairs;
    };
    if (!chosen.few_rows.to_f32)
      chosen.few_rows = best_of(all_bf16_products, has_few_rows)->few_rows;
    return chosen;
  });
}

}  // namespace ein::host
