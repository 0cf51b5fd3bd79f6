// grid 32, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
reduce_columns_f32(const float* __restrict__ x0, float* __restrict__ y0) {
  const u32 lane = threadIdx.x / 32u;
  const u32 number = blockIdx.x * 32u + threadIdx.x % 32u;
  const bool is_row = number < 1000u;
  const u32 row = is_row ? number : 999u;
  const int i0 = row;
  float t0 = __uint_as_float(0xff800000u);
  #pragma unroll 16
  for (u32 e = lane; e < 300u; e += 8u) {
    const int i1 = e;
    const float s0 = x0[i0 + i1 * 1000];
    t0 = greatest(t0, s0);
  }
  __shared__ Shared<float> memory0[256];
  combine_rows<8, 32>(t0, memory0, [](float a, float b) { return greatest(a, b); });
  t0 = memory0[threadIdx.x % 32u];
  const float r0 = t0;
  if (lane == 0 && is_row) y0[i0] = r0;
}

