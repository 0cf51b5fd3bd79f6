// What attention wants beside matrices. A host replaces it.
#include "codegen/vocabulary/text.hpp"

namespace ein::codegen::text {

constexpr std::string_view attention =
    R"cuda(// The shared memory that a launch gives each block.
template <class T>
__device__ __forceinline__ T& shared_tiles() {
  extern __shared__ __align__(16) unsigned char tiles_memory[];
  return *reinterpret_cast<T*>(tiles_memory);
}

// 2 to the power of x, to 2 units in the last place; 0 where that is below the normal numbers.
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two neighbours as the matrices have them.
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

)cuda";

}  // namespace ein::codegen::text
