// grid 12, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256, 2)
contract_f32(const float* __restrict__ x0, const float* __restrict__ x1, float* __restrict__ y) {
  alignas(16) __shared__ Shared<float> a_tile[2][16][68];
  alignas(16) __shared__ Shared<float> b_tile[2][16][68];
  const u32 block = blockIdx.x;
  const u32 m_first = block % 4u * 64u;
  const u32 n_first = block / 4u % 3u * 64u;
  const auto a_m = [&](u32 m) -> int {
    const int i0 = m;
    return i0 * 130;
  };
  const auto a_k = [&](u32 k) -> int {
    const int i1 = k;
    return i1;
  };
  const float* const a = x0;
  const auto b_n = [&](u32 n) -> int {
    const int i2 = n;
    return i2;
  };
  const auto b_k = [&](u32 k) -> int {
    const int i1 = k;
    return i1 * 150;
  };
  const float* const b = x1;
  const u32 across = threadIdx.x % 16u, down = threadIdx.x / 16u;
  float sum[4][4] = {}, a_next[4], b_next[4];
  const auto fetch = [&](u32 k_first) {
    #pragma unroll
    for (u32 p = 0; p < 4u; ++p) {
      const u32 t = threadIdx.x + 256u * p;
      const u32 k = t % 16u, m = t / 16u;
      const bool inside = m_first + m < 200u && k_first + k < 130u;
      a_next[p] = inside ? a[a_m(m_first + m) + a_k(k_first + k)] : 0.0f;
    }
    #pragma unroll
    for (u32 p = 0; p < 4u; ++p) {
      const u32 t = threadIdx.x + 256u * p;
      const u32 n = t % 64u, k = t / 64u;
      const bool inside = n_first + n < 150u && k_first + k < 130u;
      b_next[p] = inside ? b[b_n(n_first + n) + b_k(k_first + k)] : 0.0f;
    }
  };
  const auto keep = [&](u32 stage) {
    #pragma unroll
    for (u32 p = 0; p < 4u; ++p) {
      const u32 t = threadIdx.x + 256u * p;
      const u32 k = t % 16u, m = t / 16u;
      a_tile[stage][k][m] = a_next[p];
    }
    #pragma unroll
    for (u32 p = 0; p < 4u; ++p) {
      const u32 t = threadIdx.x + 256u * p;
      const u32 n = t % 64u, k = t / 64u;
      b_tile[stage][k][n] = b_next[p];
    }
  };
  fetch(0);
  keep(0);
  __syncthreads();
  u32 stage = 0;
  for (u32 k_first = 0; k_first < 130u; k_first += 16u) {
    #pragma unroll
    for (int k = 0; k < 16; ++k) {
      float left[4], right[4];
      for (int i = 0; i < 4; ++i) left[i] = a_tile[stage][k][down * 4 + i / 4 * 64 + i % 4];
      for (int j = 0; j < 4; ++j) right[j] = b_tile[stage][k][across * 4 + j / 4 * 64 + j % 4];
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) sum[i][j] += left[i] * right[j];
      }
    }
    stage ^= 1u;
    if (k_first + 16u < 130u) fetch(k_first + 16u);
    if (k_first + 16u < 130u) keep(stage);
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    const u32 m = m_first + down * 4 + i / 4 * 64 + i % 4;
    if (m >= 200u) break;
    const int i0 = m;
    for (int j = 0; j < 4; ++j) {
      const u32 n = n_first + across * 4 + j / 4 * 64 + j % 4;
      if (n >= 150u) break;
      const int i2 = n;
      y[i0 * 150 + i2] = sum[i][j];
    }
  }
}

