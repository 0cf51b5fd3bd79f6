// grid 38, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
reduce_rows_bf16(const bf16* __restrict__ x0, bf16* __restrict__ y) {
  const u32 lane = threadIdx.x % 32u;
  const u32 result = blockIdx.x * 8u + threadIdx.x / 32u;
  const int i0 = result;
  float total = 0.0f;
  if (result < 300u) {
    for (u32 r = lane * 8u; r < 1000u; r += 256u) {
      const int i1 = r;
      float a0[8];
      load(a0, x0 + i0 * 1000 + i1);
      #pragma unroll
      for (int j = 0; j < 8; ++j) {
        total = total + a0[j];
      }
    }
  }
  total = combine_lanes<32>(total, no_memory<float>(), [](float a, float b) { return a + b; });
  if (lane == 0 && result < 300u) {
    y[i0] = as<bf16>(total);
  }
}

