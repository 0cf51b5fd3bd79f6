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

)cuda";

}  // namespace ein::codegen::text
