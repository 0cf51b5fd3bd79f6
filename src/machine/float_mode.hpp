// The floating-point mode of a thread: how it rounds, and whether subnormal numbers are 0.
#pragma once

#include <cfenv>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ein {

/// The control bits of a thread, without what its operations have met so far. On x86 those of SSE
/// and AVX: no kernel computes in long double.
class FloatMode {
 public:
  static FloatMode of_this_thread() {
    FloatMode mode;
#if defined(__SSE2__)
    mode.bits_ = _mm_getcsr() & ~flags;
#elif defined(__aarch64__)
    asm volatile("mrs %0, fpcr" : "=r"(mode.bits_));
#else
    mode.bits_ = static_cast<std::uint64_t>(std::fegetround());
#endif
    return mode;
  }

  /// Gives it to the calling thread.
  void use() const {
    if (of_this_thread() == *this) return;  // reading takes less than writing
#if defined(__SSE2__)
    _mm_setcsr((_mm_getcsr() & flags) | static_cast<unsigned>(bits_));
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" : : "r"(bits_));
#else
    std::fesetround(static_cast<int>(bits_));
#endif
  }

  /// 0 for the mode in which programs begin.
  std::int64_t word() const { return static_cast<std::int64_t>(bits_ ^ usual); }
  friend bool operator==(FloatMode, FloatMode) = default;

 private:
#if defined(__SSE2__)
  static constexpr unsigned flags = 0x3f, usual = 0x1f80;  // all exceptions are masked
#elif defined(__aarch64__)
  static constexpr std::uint64_t usual = 0;
#else
  static constexpr std::uint64_t usual = FE_TONEAREST;
#endif
  std::uint64_t bits_ = usual;
};

/// The calling thread's mode while this lives.
class InFloatMode {
 public:
  explicit InFloatMode(FloatMode mode) { mode.use(); }
  ~InFloatMode() { before_.use(); }
  InFloatMode(const InFloatMode&) = delete;
  InFloatMode& operator=(const InFloatMode&) = delete;

 private:
  const FloatMode before_ = FloatMode::of_this_thread();
};

}  // namespace ein
