#include "tensor/processor.hpp"

namespace ein::host {

// Of the macros those that name vector instructions: who has them has the others of their time.
constexpr const char* const kernel_features[] = {
#if defined(__AVX__)
    "avx",
#endif
#if defined(__AVX2__)
    "avx2",
#endif
#if defined(__FMA__)
    "fma",
#endif
#if defined(__BMI__)
    "bmi",
#endif
#if defined(__BMI2__)
    "bmi2",
#endif
#if defined(__POPCNT__)
    "popcnt",
#endif
#if defined(__SSE4_2__)
    "sse4.2",
#endif
#if defined(__AVX512F__)
    "avx512f",
#endif
#if defined(__AVX512CD__)
    "avx512cd",
#endif
#if defined(__AVX512BW__)
    "avx512bw",
#endif
#if defined(__AVX512DQ__)
    "avx512dq",
#endif
#if defined(__AVX512VL__)
    "avx512vl",
#endif
#if defined(__AVX512VBMI__)
    "avx512vbmi",
#endif
#if defined(__AVX512VBMI2__)
    "avx512vbmi2",
#endif
#if defined(__AVX512VNNI__)
    "avx512vnni",
#endif
#if defined(__AVX512BITALG__)
    "avx512bitalg",
#endif
#if defined(__AVX512VPOPCNTDQ__)
    "avx512vpopcntdq",
#endif
#if defined(__AVX512BF16__)
    "avx512bf16",
#endif
#if defined(__GFNI__)
    "gfni",
#endif
    nullptr};

}  // namespace ein::host
