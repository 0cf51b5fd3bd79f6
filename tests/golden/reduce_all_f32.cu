// grid 9, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
reduce_parts_f32(const float* __restrict__ x0, float* __restrict__ partial) {
  __shared__ Shared<float> memory[8];
  const u32 lane = threadIdx.x;
  const u32 block = blockIdx.x;
  const u32 result = 0u, split = block;
  float total = 0.0f;
  if (result < 1u) {
    const u32 begin = split * 33336u;
    const u32 end = begin + 33336u < 300000u ? begin + 33336u : 300000u;
    for (u32 first = begin + lane * 4u; first < end; first += 8192u) {
      const u32 last = first + 8192u < end ? first + 8192u : end;
      float run = 0.0f;
      for (u32 r = first; r < last; r += 1024u) {
        const int i0 = r;
        float a0[4];
        load(a0, x0 + i0);
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
          run = run + a0[j];
        }
      }
      total = total + run;
    }
  }
  total = combine_lanes<256>(total, memory, [](float a, float b) { return a + b; });
  if (lane == 0 && result < 1u) {
    partial[split + result] = total;
  }
}

// grid 1, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
reduce_finish_f32(const float* __restrict__ partial, float* __restrict__ y) {
  const u32 lane = threadIdx.x % 16u;
  const u32 result = blockIdx.x * 16u + threadIdx.x / 16u;
  float total = 0.0f;
  if (result < 1u) {
    for (u32 split = lane; split < 9u; split += 16u) {
      total = total + partial[split + result];
    }
  }
  total = combine_lanes<16>(total, no_memory<float>(), [](float a, float b) { return a + b; });
  if (lane == 0 && result < 1u) {
    y[0] = total;
  }
}

