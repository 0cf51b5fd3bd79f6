// grid 5, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
argsort_f32(const float* __restrict__ x0, i64* __restrict__ y, Entry<u32, u32>* __restrict__ memory) {
  __shared__ Shared<u32> counts[16 * 256], totals[16];
  const u32 line = blockIdx.x;
  const int i0 = line;
  Entry<u32, u32>* const entries = memory + line * 2000;
  for (int i1 = threadIdx.x; i1 < 1000; i1 += 256) {
    entries[i1] = {~key_of(x0[i0 * 1000 + i1]), u32(i1)};
  }
  __syncthreads();
  const Entry<u32, u32>* const in_order = sorted<256>(entries, entries + 1000, 1000, 32, counts, totals);
  for (int i1 = threadIdx.x; i1 < 1000; i1 += 256) {
    y[i0 * 1000 + i1] = in_order[i1].place;
  }
}

