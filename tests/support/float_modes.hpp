// The floating-point modes that a program may be in.
#pragma once

#include <cfenv>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "machine/float_mode.hpp"

namespace ein::test {

struct NamedMode {
  std::string name;
  FloatMode mode;
};

/// The thread's mode with another rounding, and with subnormal operands and results as they are or
/// 0, where the processor can do that.
inline std::vector<NamedMode> all_float_modes() {
  const int rounding_before = std::fegetround();
  std::vector<NamedMode> modes;
  for (const auto& [name, rounding] : {std::pair{"nearest", FE_TONEAREST},
                                       {"upward", FE_UPWARD},
                                       {"downward", FE_DOWNWARD},
                                       {"toward zero", FE_TOWARDZERO}}) {
    std::fesetround(rounding);
    modes.push_back({name, FloatMode::of_this_thread()});
#if defined(__SSE2__)
    for (const auto& [zeros, bits] :
         {std::pair{", results to 0", 0x8000u}, {", operands to 0", 0x40u}, {", both", 0x8040u}}) {
      const InFloatMode before(modes.back().mode);
      _mm_setcsr((_mm_getcsr() & ~0x8040u) | bits);
      modes.push_back({std::string(name) + zeros, FloatMode::of_this_thread()});
    }
#elif defined(__aarch64__)
    std::uint64_t bits = 0;
    asm volatile("mrs %0, fpcr" : "=r"(bits));
    asm volatile("msr fpcr, %0" : : "r"(bits | std::uint64_t{1} << 24));
    modes.push_back({std::string(name) + ", both", FloatMode::of_this_thread()});
    asm volatile("msr fpcr, %0" : : "r"(bits));
#endif
  }
  std::fesetround(rounding_before);
  return modes;
}

}  // namespace ein::test
