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

)cuda";

}  // namespace ein::codegen::text
