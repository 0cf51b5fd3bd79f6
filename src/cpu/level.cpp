#include "cpu/level.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <ein/error.hpp>
#include "tensor/fork.hpp"

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
const Table* best_of(const Table* const (&all)[N], IsWanted is_wanted) {
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

/// Of one thread, of several runs the best: a millisecond in all.
double flops_of(double (*multiply_add)(std::int64_t)) {
  constexpr std::int64_t steps = 20'000;
  double best = INFINITY, flops = 0;
  for (int run = 0; run < 8; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    flops = multiply_add(steps);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return flops / std::max(best, 1e-9);
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
  const auto choose = [] {
    const Bf16Products* const best = best_of(all_bf16_products);
    if (!best->in_pairs ||
        flops_of(best->in_pairs->multiply_add) > flops_of(level().multiply_add_f32))
      return best;
    return best_of(all_bf16_products, [](const Bf16Products& p) { return !p.in_pairs; });
  };
  return *made_once(choose);
}

}  // namespace ein::host
