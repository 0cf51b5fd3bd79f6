// grid 24, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
copy_f32(const u32* __restrict__ x0, u32* __restrict__ y) {
  const u32 element = (blockIdx.x * 256u + threadIdx.x) * 4u;
  if (element >= 24576u) return;
  const int i3 = element % 32u;
  const int i1 = element / 32u % 64u;
  const int i2 = element / 2048u % 6u;
  const int i0 = element / 12288u;
  u32 a0[4];
  load(a0, x0 + i0 * 12288 + i1 * 192 + i2 * 32 + i3);
  store(y + i0 * 12288 + i1 * 32 + i2 * 2048 + i3, a0);
}

