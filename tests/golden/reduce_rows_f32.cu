// grid 75, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
reduce_rows_f32(const float* __restrict__ x0, float* __restrict__ y) {
  __shared__ Shared<float> memory[8];
  const u32 lane = threadIdx.x % 64u;
  const u32 result = blockIdx.x * 4u + threadIdx.x / 64u;
  const int i0 = result;
  float total = 0.0f;
  if (result < 300u) {
    for (u32 r = lane * 4u; r < 1000u; r += 256u) {
      const int i1 = r;
      float a0[4];
      load(a0, x0 + i0 * 1000 + i1);
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        total = total + a0[j];
      }
    }
  }
  total = combine_lanes<64>(total, memory, [](float a, float b) { return a + b; });
  if (lane == 0 && result < 300u) {
    y[i0] = total;
  }
}

