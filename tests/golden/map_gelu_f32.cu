// grid 63, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
map_f32(const float* __restrict__ x0, const float* __restrict__ x1, float* __restrict__ y,
    const float c0, const float c1) {
  const u32 element = (blockIdx.x * 256u + threadIdx.x) * 4u;
  if (element >= 64000u) return;
  const int i1 = element % 1000u;
  const int i0 = element / 1000u;
  float a0[4];
  load(a0, x0 + i0 * 1000 + i1);
  float a1[4];
  load(a1, x1 + i1);
  float r[4];
  #pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float v0 = c0 * a0[j];
    const float v1 = a0[j] * c1;
    const float v2 = erff(v1);
    const float v3 = 1.0f + v2;
    const float v4 = v0 * v3;
    const float v5 = expf(a1[j]);
    const float v6 = v4 + v5;
    r[j] = v6;
  }
  store(y + i0 * 1000 + i1, r);
}

