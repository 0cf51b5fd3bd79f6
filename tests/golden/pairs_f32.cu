// grid 544, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256, 2)
pairs_f32(const float* __restrict__ x0, const float* __restrict__ x1, float* __restrict__ y) {
  alignas(16) __shared__ Shared<float> s0_tile[2][16][68];
  alignas(16) __shared__ Shared<float> s1_tile[2][16][132];
  const u32 block = blockIdx.x;
  const u32 tile = block % 544u, group = tile / 272u;
  const u32 m_first = (group * 16u + tile % 272u % 16u) * 64u;
  const u32 n_first = tile % 272u / 16u * 128u;
  const auto s0_m = [&](u32 m) -> int {
    const int i0 = m;
    return i0 * 72;
  };
  const auto s0_k = [&](u32 k) -> int {
    const int i2 = k;
    return i2;
  };
  const float* const s0 = x0;
  const auto s1_n = [&](u32 n) -> int {
    const int i1 = n;
    return i1 * 72;
  };
  const auto s1_k = [&](u32 k) -> int {
    const int i2 = k;
    return i2;
  };
  const float* const s1 = x1;
  const u32 across = threadIdx.x % 16u, down = threadIdx.x / 16u;
  float sum[4][8] = {}, s0_next[4], s1_next[8];
  const auto fetch = [&](u32 k_first) {
    #pragma unroll
    for (u32 p = 0; p < 4u; ++p) {
      const u32 t = threadIdx.x + 256u * p;
      const u32 k = t % 16u, m = t / 16u;
      const bool inside = m_first + m < 2048u && k_first + k < 72u;
      s0_next[p] = inside ? s0[s0_m(m_first + m) + s0_k(k_first + k)] : 0.0f;
    }
    #pragma unroll
    for (u32 p = 0; p < 8u; ++p) {
      const u32 t = threadIdx.x + 256u * p;
      const u32 k = t % 16u, n = t / 16u;
      const bool inside = n_first + n < 2050u && k_first + k < 72u;
      s1_next[p] = inside ? s1[s1_n(n_first + n) + s1_k(k_first + k)] : 0.0f;
    }
  };
  const auto keep = [&](u32 stage) {
    #pragma unroll
    for (u32 p = 0; p < 4u; ++p) {
      const u32 t = threadIdx.x + 256u * p;
      const u32 k = t % 16u, m = t / 16u;
      s0_tile[stage][k][m] = s0_next[p];
    }
    #pragma unroll
    for (u32 p = 0; p < 8u; ++p) {
      const u32 t = threadIdx.x + 256u * p;
      const u32 k = t % 16u, n = t / 16u;
      s1_tile[stage][k][n] = s1_next[p];
    }
  };
  fetch(0);
  keep(0);
  __syncthreads();
  u32 stage = 0;
  for (u32 k_first = 0; k_first < 72u; k_first += 16u) {
    const u32 depths = 72u - k_first < 16u ? 72u - k_first : 16u;
    #pragma unroll 8
    for (u32 k = 0; k < depths; k += 1u) {
      float s0_at[4], s1_at[8];
      for (int i = 0; i < 4; ++i) s0_at[i] = s0_tile[stage][k][down * 4 + i / 4 * 64 + i % 4];
      for (int j = 0; j < 8; ++j) s1_at[j] = s1_tile[stage][k][across * 4 + j / 4 * 64 + j % 4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
          const float v0 = s0_at[i] - s1_at[j];
          const float v1 = fabsf(v0);
          sum[i][j] = sum[i][j] + v1;
        }
      }
    }
    stage ^= 1u;
    if (k_first + 16u < 72u) fetch(k_first + 16u);
    if (k_first + 16u < 72u) keep(stage);
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    const u32 m = m_first + down * 4 + i / 4 * 64 + i % 4;
    if (m >= 2048u) break;
    const int i0 = m;
    for (int j = 0; j < 8; ++j) {
      const u32 n = n_first + across * 4 + j / 4 * 64 + j % 4;
      if (n >= 2050u) break;
      const int i1 = n;
      y[i0 * 2050 + i1] = sum[i][j];
    }
  }
}

