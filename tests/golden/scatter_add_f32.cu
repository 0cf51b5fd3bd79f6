// grid 1, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
scatter_order_f32(const i32* __restrict__ x1, Entry<u32, u32>* __restrict__ memory, Fault* fault) {
  __shared__ Shared<u32> counts[16 * 256], totals[16];
  const u32 line = blockIdx.x;
  Entry<u32, u32>* const entries = memory + line * 100;
  for (u32 point = threadIdx.x; point < 100u; point += 256u) {
    const int i0 = point;
    const i64 position = x1[i0];
    const bool inside = is_inside(position, 30, fault);
    entries[point] = {inside ? u32(position) : 30u, point};
  }
  __syncthreads();
  sorted<256>(entries, entries + 100, 100, 5, counts, totals);
}

// grid 8, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
scatter_add_f32(const float* __restrict__ x0, const Entry<u32, u32>* __restrict__ memory,
    float* __restrict__ y) {
  const u32 element = blockIdx.x * 256u + threadIdx.x;
  if (element >= 1920u) return;
  const int i1 = element % 64u;
  const u32 position = element / 64u % 30u, line = element / 1920u;
  const Entry<u32, u32>* const entries = memory + line * 100;
  double sum = 0.0;
  for (u32 i = first_of(entries, u32(100), position); i < 100u && entries[i].key == position; ++i) {
    const u32 point = entries[i].place;
    const int i0 = point;
    sum = sum + as<double>(x0[i0 * 64 + i1]);
  }
  y[i1 + position * 64] = as<float>(sum);
}

