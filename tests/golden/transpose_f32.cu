// grid 36, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256)
transpose_f32(const u32* __restrict__ x0, u32* __restrict__ y) {
  __shared__ Shared<u32> tile[32][33];
  const int column = threadIdx.x % 32u, row = threadIdx.x / 32u;
  const u32 block = blockIdx.x;
  const int from_first = block % 3u * 32u;
  const int to_first = block / 3u % 4u * 32u;
  const int i0 = block / 12u;
  for (int k = row; k < 32; k += 8) {
    const int i2 = from_first + column;
    const int i1 = to_first + k;
    if (i2 < 70 && i1 < 100) tile[k][column] = x0[i0 * 7000 + i1 * 70 + i2];
  }
  __syncthreads();
  for (int k = row; k < 32; k += 8) {
    const int i2 = from_first + k;
    const int i1 = to_first + column;
    if (i2 < 70 && i1 < 100) y[i0 * 7000 + i1 + i2 * 100] = tile[column][k];
  }
}

