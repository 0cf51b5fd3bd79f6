// grid 9, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
reduce_parts_f32(const float* __restrict__ x0, float* __restrict__ y0) {
  const u32 lane = threadIdx.x;
  const u32 line = blockIdx.x;
  const u32 row = 0u, begin = line * 33336u;
  const u32 end = begin + 33336u < 300000u ? begin + 33336u : 300000u;
  float t0 = 0.0f;
  for (u32 first = begin + lane * 4u; first < end; first += 8192u) {
    const u32 last = first + 8192u < end ? first + 8192u : end;
    float u0 = 0.0f;
    #pragma unroll 4
    for (u32 e = first; e < last; e += 1024u) {
      const int i0 = e;
      float s0[4];
      load(s0, x0 + i0);
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        u0 = u0 + s0[j];
      }
    }
    t0 = t0 + u0;
  }
  __shared__ Shared<float> memory0[8];
  t0 = combine_lanes<256>(t0, memory0, [](float a, float b) { return a + b; });
  const float r0 = t0;
  if (lane == 0) y0[line] = r0;
}

// grid 1, 1, 1, block 128, 1, 1
extern "C" __global__ void __launch_bounds__(128)
reduce_finish_f32(const float* __restrict__ x0, float* __restrict__ y0) {
  const u32 lane = threadIdx.x % 16u;
  const u32 number = blockIdx.x * 8u + threadIdx.x / 16u;
  const bool is_row = number < 1u;
  const u32 row = is_row ? number : 0u;
  float t0 = 0.0f;
  #pragma unroll
  for (int p = 0; p < 1; ++p) {
    const u32 e = p * 16u + lane;
    if (e < 9u) {
      const int i0 = e;
      const float s0 = x0[i0];
      t0 = t0 + s0;
    }
  }
  t0 = combine_lanes<16>(t0, no_memory<float>(), [](float a, float b) { return a + b; });
  const float r0 = t0;
  if (lane == 0 && is_row) y0[0] = r0;
}

