// Combinations and scans of the values of a block's threads.
#include "codegen/vocabulary/text.hpp"

namespace ein::codegen::text {

constexpr std::string_view combining =
    R"cuda(// The combination of the values of `lanes` neighbouring threads, a power of two.
// `memory` has an element for each warp; up to 32 lanes need none.
template <class C>
__device__ __forceinline__ Shared<C>* no_memory() {
  return nullptr;
}
template <int lanes, class C, class F>
__device__ __forceinline__ C combine_lanes(C value, Shared<C>* memory, F combine) {
#pragma unroll
  for (int step = lanes < 32 ? lanes / 2 : 16; step > 0; step /= 2) {
    value = combine(value, C(__shfl_xor_sync(0xffffffffu, value, step)));
  }
  if (lanes > 32) {
    constexpr int warps = lanes > 32 ? lanes / 32 : 1;
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) memory[warp] = value;
    __syncthreads();
    const int first = warp / warps * warps;
    value = memory[first];
#pragma unroll
    for (int w = 1; w < warps; ++w) value = combine(value, C(memory[first + w]));
  }
  return value;
}
// The same for threads `step` apart; the result is that of the first of them. `memory` has an
// element for each thread.
template <int lanes, int step, class C, class F>
__device__ __forceinline__ C combine_rows(C value, Shared<C>* memory, F combine) {
  const int thread = threadIdx.x;
  memory[thread] = value;
  __syncthreads();
#pragma unroll
  for (int half = lanes / 2; half > 0; half /= 2) {
    if (thread / step < half) {
      value = combine(value, C(memory[thread + half * step]));
      memory[thread] = value;
    }
    __syncthreads();
  }
  return value;
}

)cuda";

constexpr std::string_view long_sums =
    R"cuda(// sum + rest as the sum of many values: what each addition rounds off goes to `rest` (Knuth, The
// Art of Computer Programming 2, section 4.2.2, theorem B).
__device__ __forceinline__ void add_long(double& sum, double& rest, double value) {
  const double next = sum + value, of_value = next - sum;
  rest += (sum - (next - of_value)) + (value - of_value);
  sum = next;
}

)cuda";

constexpr std::string_view scanning =
    R"cuda(// The combination of the values of all threads up to this one; memory[0] has them all.
template <class C, int threads, class F>
__device__ __forceinline__ C scan_block(C value, Shared<C> (&memory)[2][threads], F combine) {
  const int thread = threadIdx.x;
  int now = 0;
  memory[0][thread] = value;
  __syncthreads();
#pragma unroll
  for (int step = 1; step < threads; step *= 2) {
    if (thread >= step) value = combine(C(memory[now][thread - step]), value);
    now ^= 1;
    memory[now][thread] = value;
    __syncthreads();
  }
  static_assert(threads == 256, "an even number of steps ends in the first half");
  return value;
}

)cuda";

}  // namespace ein::codegen::text
