// grid 75, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
reduce_rows_f32(const float* __restrict__ x0, float* __restrict__ y0) {
  const u32 lane = threadIdx.x % 64u;
  const u32 row = blockIdx.x * 4u + threadIdx.x / 64u;
  const int i0 = row;
  float t0 = 0.0f;
  #pragma unroll
  for (int p = 0; p < 4; ++p) {
    const u32 e = p * 256u + lane * 4u;
    if (e < 1000u) {
      const int i1 = e;
      float s0[4];
      load(s0, x0 + i0 * 1000 + i1);
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        t0 = t0 + s0[j];
      }
    }
  }
  __shared__ Shared<float> memory0[8];
  t0 = combine_lanes<64>(t0, memory0, [](float a, float b) { return a + b; });
  const float r0 = t0;
  if (lane == 0) y0[i0] = r0;
}

