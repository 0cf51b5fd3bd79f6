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

// Bits of the nearest 16-bit float, ties to even, and back.
__device__ __forceinline__ unsigned short f16_bits(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
__device__ __forceinline__ float float_of_f16(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
__device__ __forceinline__ unsigned short bf16_bits(float x) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
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
