// What shared memory is made of, alignment, and conversions to 16 bits. A host replaces it.
#include "codegen/vocabulary/text.hpp"

namespace ein::codegen::text {

constexpr std::string_view machine = R"cuda(// What shared memory is made of.
template <class T>
using Shared = T;

// An address that is a multiple of so many bytes.
template <int bytes, class T>
__device__ __forceinline__ T* aligned(T* address) {
  return address;
}

// Bits of the nearest 16-bit floats, ties to even, of two neighbours and of one. To convert one
// alone takes as long as a square root, to convert two as long as an addition.
__device__ __forceinline__ unsigned packed_bf16(float low, float high) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
__device__ __forceinline__ unsigned packed_f16(float low, float high) {
  unsigned bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
__device__ __forceinline__ unsigned short bf16_bits(float x) {
  return (unsigned short)packed_bf16(x, 0.0f);
}
__device__ __forceinline__ unsigned short f16_bits(float x) {
  return (unsigned short)packed_f16(x, 0.0f);
}
__device__ __forceinline__ float float_of_f16(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}

// The smaller and the larger; NaN if there is one.
__device__ __forceinline__ float least(float a, float b) {
  float x;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}
__device__ __forceinline__ float greatest(float a, float b) {
  float x;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}

// 1 / x, off by at most a unit in the last place; of numbers that are not near the largest.
__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

)cuda";

}  // namespace ein::codegen::text
