// grid 512, 1, 1, block 128, 1, 1
extern "C" __global__ void __launch_bounds__(128)
rows_bf16(const bf16* __restrict__ x0, const bf16* __restrict__ x1, const bf16* __restrict__ x2,
    bf16* __restrict__ y2) {
  const u32 lane = threadIdx.x;
  const u32 row = blockIdx.x;
  const int i0 = row;
  float s0[1][8];
  float t0 = 0.0f;
  #pragma unroll
  for (int p = 0; p < 1; ++p) {
    const u32 e = p * 1024u + lane * 8u;
    if (e < 768u) {
      const int i1 = e;
      load(s0[p], x0 + i0 * 768 + i1);
      #pragma unroll
      for (int j = 0; j < 8; ++j) {
        t0 = t0 + s0[p][j];
      }
    }
  }
  __shared__ Shared<float> memory0[4];
  t0 = combine_lanes<128>(t0, memory0, [](float a, float b) { return a + b; });
  const float n0_0 = t0 / 768.0f;
  const float r0 = n0_0;
  float t1 = 0.0f;
  #pragma unroll
  for (int p = 0; p < 1; ++p) {
    const u32 e = p * 1024u + lane * 8u;
    if (e < 768u) {
      const int i1 = e;
      #pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float n1_0 = s0[p][j] - r0;
        const float n1_1 = n1_0 * n1_0;
        t1 = t1 + n1_1;
      }
    }
  }
  __shared__ Shared<float> memory1[4];
  t1 = combine_lanes<128>(t1, memory1, [](float a, float b) { return a + b; });
  const float n1_0 = t1 / 768.0f;
  const float n1_1 = n1_0 + 1e-05f;
  const float n1_2 = rsqrtf(n1_1);
  const float r1 = n1_2;
  #pragma unroll
  for (int p = 0; p < 1; ++p) {
    const u32 e = p * 1024u + lane * 8u;
    if (e < 768u) {
      const int i1 = e;
      float s1[8];
      load(s1, x1 + i1);
      float s2[8];
      load(s2, x2 + i1);
      float o2[8];
      #pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float n2_0 = s0[p][j] - r0;
        const float n2_1 = n2_0 * r1;
        const float n2_2 = n2_1 * s1[j];
        const float n2_3 = n2_2 + s2[j];
        const float w2 = as<float>(as<bf16>(n2_3));
        o2[j] = w2;
      }
      store(y2 + i0 * 768 + i1, o2);
    }
  }
}

