// grid 38, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
reduce_rows_bf16(const bf16* __restrict__ x0, bf16* __restrict__ y0) {
  const u32 lane = threadIdx.x % 32u;
  const u32 number = blockIdx.x * 8u + threadIdx.x / 32u;
  const bool is_row = number < 300u;
  const u32 row = is_row ? number : 299u;
  const int i0 = row;
  float t0 = 0.0f;
  for (u32 first = lane * 8u; first < 1000u; first += 1024u) {
    const u32 last = first + 1024u < 1000u ? first + 1024u : 1000u;
    float u0 = 0.0f;
    #pragma unroll 4
    for (u32 e = first; e < last; e += 256u) {
      const int i1 = e;
      float s0[8];
      load(s0, x0 + i0 * 1000 + i1);
      #pragma unroll
      for (int j = 0; j < 8; ++j) {
        u0 = u0 + s0[j];
      }
    }
    t0 = t0 + u0;
  }
  t0 = combine_lanes<32>(t0, no_memory<float>(), [](float a, float b) { return a + b; });
  const float r0 = as<float>(as<bf16>(t0));
  if (lane == 0 && is_row) y0[i0] = as<bf16>(r0);
}

