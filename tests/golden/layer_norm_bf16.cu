// grid 512, 1, 1, block 128, 1, 1
extern "C" __global__ void __launch_bounds__(128)
rows_bf16(const bf16* __restrict__ x0, const bf16* __restrict__ x1, const bf16* __restrict__ x2,
    bf16* __restrict__ y5) {
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
        const float n0_0 = s0[p][j] * 2.3283064e-10f;
        t0 = t0 + n0_0;
      }
    }
  }
  __shared__ Shared<float> memory0[4];
  t0 = combine_lanes<128>(t0, memory0, [](float a, float b) { return a + b; });
  const float n0_0 = t0 / 768.0f;
  const float n0_1 = least(n0_0, 7.922816e+28f);
  const float n0_2 = greatest(n0_1, (-7.922816e+28f));
  const float n0_3 = n0_2 * 4294967296.0f;
  const float r0 = n0_3;
  float t1 = 0.0f;
  float t2 = 0.0f;
  #pragma unroll
  for (int p = 0; p < 1; ++p) {
    const u32 e = p * 1024u + lane * 8u;
    if (e < 768u) {
      const int i1 = e;
      #pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float n1_0 = s0[p][j] - r0;
        t1 = t1 + n1_0;
        const float n2_0 = s0[p][j] - r0;
        const float n2_1 = n2_0 * n2_0;
        t2 = t2 + n2_1;
      }
    }
  }
  __shared__ Shared<float> memory1[4];
  t1 = combine_lanes<128>(t1, memory1, [](float a, float b) { return a + b; });
  const float r1 = t1;
  __shared__ Shared<float> memory2[4];
  t2 = combine_lanes<128>(t2, memory2, [](float a, float b) { return a + b; });
  const float r2 = t2;
  const float n3_0 = r1 / 768.0f;
  const float n3_1 = r0 + n3_0;
  const float r3 = n3_1;
  const float n4_0 = r2 / 768.0f;
  const float n4_1 = r1 / 768.0f;
  const float n4_2 = n4_1 * n4_1;
  const float n4_3 = n4_0 - n4_2;
  const float n4_4 = float(n4_3 < 0.0f);
  const float n4_5 = n4_4 != 0.0f ? 0.0f : n4_3;
  const float n4_6 = n4_5 + 1e-05f;
  const float n4_7 = rsqrtf(n4_6);
  const float r4 = n4_7;
  #pragma unroll
  for (int p = 0; p < 1; ++p) {
    const u32 e = p * 1024u + lane * 8u;
    if (e < 768u) {
      const int i1 = e;
      float s1[8];
      load(s1, x1 + i1);
      float s2[8];
      load(s2, x2 + i1);
      float o5[8];
      #pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float n5_0 = s0[p][j] - r3;
        const float n5_1 = n5_0 * r4;
        const float n5_2 = n5_1 * s1[j];
        const float n5_3 = n5_2 + s2[j];
        const float w5 = as<float>(as<bf16>(n5_3));
        o5[j] = w5;
      }
      store(y5 + i0 * 768 + i1, o5);
    }
  }
}

