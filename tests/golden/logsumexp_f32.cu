// grid 4, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
reduce_rows_f32_0(const float* __restrict__ x0, float* __restrict__ y) {
  const u32 lane = threadIdx.x % 32u;
  const u32 result = blockIdx.x * 8u + threadIdx.x / 32u;
  const int i0 = result;
  float total = __uint_as_float(0xff800000u);
  if (result < 30u) {
    for (u32 r = lane * 4u; r < 500u; r += 128u) {
      const int i1 = r;
      float a0[4];
      load(a0, x0 + i0 * 500 + i1);
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        total = greatest(total, a0[j]);
      }
    }
  }
  total = combine_lanes<32>(total, no_memory<float>(), [](float a, float b) { return greatest(a, b); });
  if (lane == 0 && result < 30u) {
    y[i0] = total;
  }
}

// grid 4, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
reduce_rows_f32_1(const float* __restrict__ x0, const float* __restrict__ x1, float* __restrict__ y) {
  const u32 lane = threadIdx.x % 32u;
  const u32 result = blockIdx.x * 8u + threadIdx.x / 32u;
  const int i0 = result;
  float total = 0.0f;
  if (result < 30u) {
    for (u32 r = lane * 4u; r < 500u; r += 128u) {
      const int i1 = r;
      float a0[4];
      load(a0, x0 + i0 * 500 + i1);
      const float a1 = x1[i0];
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float v0 = a1 - a1;
        const float v1 = float(v0 == 0.0f);
        const float v2 = v1 != 0.0f ? a1 : 0.0f;
        const float v3 = a0[j] - v2;
        const float v4 = expf(v3);
        total = total + v4;
      }
    }
  }
  total = combine_lanes<32>(total, no_memory<float>(), [](float a, float b) { return a + b; });
  if (lane == 0 && result < 30u) {
    y[i0] = total;
  }
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

