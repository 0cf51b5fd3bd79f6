// grid 4, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
reduce_rows_f32_0(const float* __restrict__ x0, float* __restrict__ y0) {
  const u32 lane = threadIdx.x % 32u;
  const u32 number = blockIdx.x * 8u + threadIdx.x / 32u;
  const bool is_row = number < 30u;
  const u32 row = is_row ? number : 29u;
  const int i0 = row;
  float t0 = __uint_as_float(0xff800000u);
  #pragma unroll
  for (int p = 0; p < 4; ++p) {
    const u32 e = p * 128u + lane * 4u;
    if (e < 500u) {
      const int i1 = e;
      float s0[4];
      load(s0, x0 + i0 * 500 + i1);
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        t0 = greatest(t0, s0[j]);
      }
    }
  }
  t0 = combine_lanes<32>(t0, no_memory<float>(), [](float a, float b) { return greatest(a, b); });
  const float r0 = t0;
  if (lane == 0 && is_row) y0[i0] = r0;
}

// grid 4, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
reduce_rows_f32_1(const float* __restrict__ x0, const float* __restrict__ x1, float* __restrict__ y0) {
  const u32 lane = threadIdx.x % 32u;
  const u32 number = blockIdx.x * 8u + threadIdx.x / 32u;
  const bool is_row = number < 30u;
  const u32 row = is_row ? number : 29u;
  const int i0 = row;
  const float s1 = x1[i0];
  float t0 = 0.0f;
  #pragma unroll
  for (int p = 0; p < 4; ++p) {
    const u32 e = p * 128u + lane * 4u;
    if (e < 500u) {
      const int i1 = e;
      float s0[4];
      load(s0, x0 + i0 * 500 + i1);
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float n0_0 = s1 - s1;
        const float n0_1 = float(n0_0 == 0.0f);
        const float n0_2 = n0_1 != 0.0f ? s1 : 0.0f;
        const float n0_3 = s0[j] - n0_2;
        const float n0_4 = expf(n0_3);
        t0 = t0 + n0_4;
      }
    }
  }
  t0 = combine_lanes<32>(t0, no_memory<float>(), [](float a, float b) { return a + b; });
  const float r0 = t0;
  if (lane == 0 && is_row) y0[i0] = r0;
}

// grid 1, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
map_f32_2(const float* __restrict__ x0, const float* __restrict__ x1, float* __restrict__ y) {
  const u32 element = (blockIdx.x * 256u + threadIdx.x) * 4u;
  if (element >= 30u) return;
  const int i0 = element;
  float a0[4];
  load(a0, x0 + i0, 30u - element);
  float a1[4];
  load(a1, x1 + i0, 30u - element);
  float r[4];
  #pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float v0 = a0[j] - a0[j];
    const float v1 = float(v0 == 0.0f);
    const float v2 = v1 != 0.0f ? a0[j] : 0.0f;
    const float v3 = logf(a1[j]);
    const float v4 = v2 + v3;
    r[j] = v4;
  }
  store(y + i0, r, 30u - element);
}

