#include "machine/processor.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <ein/error.hpp>
#include "machine/environment.hpp"
#include "machine/fork.hpp"
#include "machine/system.hpp"

// What a static asmjit's `stderr` is renamed to (cmake/kernels.cmake).
extern "C" {
[[gnu::visibility("hidden")]] extern std::FILE* ein_stderr;
std::FILE* ein_stderr = stderr;
}

namespace ein::host {
namespace {

constexpr std::string_view names[] = {"baseline", "neon", "v2", "v3", "v4", "v4_bf16", "v4_amx"};

#if defined(__x86_64__)
/// Whether LZCNT, MOVBE and F16C are here, which not every compiler's __builtin_cpu_supports knows.
bool has_rest_of_v3() {
  unsigned a = 0, b = 0, basic = 0, extended = 0, d = 0;
  return __get_cpuid(1, &a, &b, &basic, &d) && __get_cpuid(0x80000001, &a, &b, &extended, &d) &&
         (basic & bit_MOVBE) && (basic & bit_F16C) && (extended & bit_LZCNT);
}

/// AMX, which few compilers' __builtin_cpu_supports knows.
bool has_amx() {
  constexpr unsigned bf16 = 1U << 22, tiles = 1U << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & bf16) && (d & tiles);
}
#endif

std::vector<Isa> find_isas() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#define EIN_HAS(feature) (__builtin_cpu_supports(feature) != 0)
  // Where there is AMX, AVX512-BF16 multiplies at half the rate of AVX-512 (Xeon of the 5th
  // generation): it is of use only as what `v4_amx` follows.
  const bool amx = has_amx(), tiles = amx && system::allow_tiles();
  const bool has[] = {
      EIN_HAS("ssse3") && EIN_HAS("sse4.1") && EIN_HAS("sse4.2") && EIN_HAS("popcnt"),
      EIN_HAS("avx2") && EIN_HAS("fma") && EIN_HAS("bmi") && EIN_HAS("bmi2") && has_rest_of_v3(),
      EIN_HAS("avx512f") && EIN_HAS("avx512bw") && EIN_HAS("avx512cd") && EIN_HAS("avx512dq") &&
          EIN_HAS("avx512vl"),
      EIN_HAS("avx512bf16") && amx == tiles, tiles};
#undef EIN_HAS
  std::vector<Isa> isas{Isa::baseline};
  for (const Isa isa : {Isa::v2, Isa::v3, Isa::v4, Isa::v4_bf16, Isa::v4_amx}) {
    if (!has[static_cast<int>(isa) - static_cast<int>(Isa::v2)]) break;
    isas.push_back(isa);
  }
  return isas;
#elif defined(__aarch64__)
  return {Isa::neon};
#else
  return {Isa::baseline};
#endif
}

/// "v2, v3 and v4".
std::string list_of(const std::vector<Isa>& isas) {
  std::string list;
  for (std::size_t i = 0; i < isas.size(); ++i) {
    list += i == 0 ? "" : i + 1 == isas.size() ? " and " : ", ";
    list += name(isas[i]);
  }
  return list;
}

}  // namespace

std::string_view name(Isa isa) { return names[static_cast<std::size_t>(isa)]; }

const std::vector<Isa>& isas_here() {
  return made_once([] { return find_isas(); });
}

Isa isa_of(std::string_view text) {
  const std::vector<Isa>& here = isas_here();
  if (text.empty()) return here.back();
  const auto named = [&](Isa isa) { return name(isa) == text; };
  if (const auto found = std::find_if(here.begin(), here.end(), named); found != here.end())
    return *found;
  const std::string has = "\n  help: this processor has " + list_of(here);
  if (std::find(std::begin(names), std::end(names), text) != std::end(names))
    throw Error(ErrorKind::device,
                "EIN_ISA asks for " + std::string(text) + ", which this processor lacks" + has);
  throw Error(ErrorKind::value,
              "EIN_ISA is '" + std::string(text) + "', which is no instruction set" + has);
}

Isa isa() {
  return made_once([] { return isa_of(environment(Variable::isa)); });
}

}  // namespace ein::host
