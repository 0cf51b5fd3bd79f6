// grid 7, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
gather_f32(const u32* __restrict__ x0, const i64* __restrict__ x1, u32* __restrict__ y, Fault* fault) {
  const u32 element = (blockIdx.x * 256u + threadIdx.x) * 4u;
  if (element >= 6400u) return;
  const int i1 = element % 64u;
  const int i0 = element / 64u;
  const i64 p0 = x1[i0];
  if (!is_inside(p0, 30, fault)) return;
  u32 a0[4];
  load(a0, x0 + int(p0) * 64 + i1);
  store(y + i0 * 64 + i1, a0);
}

