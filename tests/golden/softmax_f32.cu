// grid 512, 1, 1, block 128, 1, 1
extern "C" __global__ void __launch_bounds__(128)
rows_f32(const float* __restrict__ x0, float* __restrict__ y3) {
  const u32 lane = threadIdx.x;
  const u32 row = blockIdx.x;
  const int i0 = row;
  float h1[2][4];
  float s0[2][4];
  float t0 = __uint_as_float(0xff800000u);
  #pragma unroll
  for (int p = 0; p < 2; ++p) {
    const u32 e = p * 512u + lane * 4u;
    if (e < 768u) {
      const int i1 = e;
      load(s0[p], x0 + i0 * 768 + i1);
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        t0 = greatest(t0, s0[p][j]);
      }
    }
  }
  __shared__ Shared<float> memory0[4];
  t0 = combine_lanes<128>(t0, memory0, [](float a, float b) { return greatest(a, b); });
  const float r0 = t0;
  float t2 = 0.0f;
  #pragma unroll
  for (int p = 0; p < 2; ++p) {
    const u32 e = p * 512u + lane * 4u;
    if (e < 768u) {
      const int i1 = e;
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float n1_0 = s0[p][j] - r0;
        const float n1_1 = expf(n1_0);
        h1[p][j] = n1_1;
        t2 = t2 + h1[p][j];
      }
    }
  }
  __shared__ Shared<float> memory2[4];
  t2 = combine_lanes<128>(t2, memory2, [](float a, float b) { return a + b; });
  const float r2 = t2;
  #pragma unroll
  for (int p = 0; p < 2; ++p) {
    const u32 e = p * 512u + lane * 4u;
    if (e < 768u) {
      const int i1 = e;
      float o3[4];
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float n3_0 = h1[p][j] / r2;
        const float w3 = n3_0;
        o3[j] = w3;
      }
      store(y3 + i0 * 768 + i1, o3);
    }
  }
}

