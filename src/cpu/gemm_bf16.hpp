// Matrix products of bf16 without copies in f32, on processors that multiply pairs of them.
#pragma once

#include <ein/dtype.hpp>
#include "cpu/gemm.hpp"

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define EIN_HAS_BF16_PRODUCTS 1
#else
#define EIN_HAS_BF16_PRODUCTS 0
#endif

#if EIN_HAS_BF16_PRODUCTS

namespace ein::host {

/// Results in bf16 have at most so many terms; longer sums are to be in float, and rounded when
/// complete.
inline constexpr std::int64_t most_bf16_terms = 2048;

/// c = a · b, or c += a · b, on the calling thread, of any strides. C is float or bf16. Sums are in
/// f32, pair by pair: VDPBF16PS, which takes subnormal numbers for 0 (Intel 64 and IA-32
/// Architectures Software Developer's Manual, volume 2). A result in bf16 is rounded once, and
/// cannot be accumulated to. `finish`: see gemm.
template <class C>
void bf16_product(const MatrixRef<C>& c, const MatrixRef<const bf16>& a,
                  const MatrixRef<const bf16>& b, bool accumulate, const Finish& finish = {});

}  // namespace ein::host

#endif
