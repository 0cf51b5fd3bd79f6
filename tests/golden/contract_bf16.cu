// grid 12, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256, 2)
contract_mma_bf16(const bf16* __restrict__ x0, const bf16* __restrict__ x1, bf16* __restrict__ y) {
  __shared__ __align__(16) Shared<bf16> a_tile[2][64][40];
  __shared__ __align__(16) Shared<bf16> b_tile[2][32][72];
  const auto a_m = [](u32 m) -> int {
    const int i0 = m;
    return i0 * 130;
  };
  const auto a_k = [](u32 k) -> int {
    const int i1 = k;
    return i1;
  };
  const auto b_n = [](u32 n) -> int {
    const int i2 = n;
    return i2;
  };
  const auto b_k = [](u32 k) -> int {
    const int i1 = k;
    return i1 * 150;
  };
  const u32 block = blockIdx.x;
  const u32 n_first = block % 3u * 64u;
  const u32 m_first = block / 3u % 4u * 64u;
  const bf16* const a = x0;
  const bf16* const b = x1;
  const auto fetch = [&](u32 stage, u32 k_first) {
    #pragma unroll
    for (u32 t = threadIdx.x; t < 2048u; t += 256u) {
      const u32 k = t % 32u, m = t / 32u;
      const bool inside = m_first + m < 200u && k_first + k < 130u;
      a_tile[stage][m][k] = inside ? a[a_m(m_first + m) + a_k(k_first + k)] : bf16{0};
    }
    #pragma unroll
    for (u32 t = threadIdx.x; t < 2048u; t += 256u) {
      const u32 n = t % 64u, k = t / 64u;
      const bool inside = n_first + n < 150u && k_first + k < 130u;
      b_tile[stage][k][n] = inside ? b[b_n(n_first + n) + b_k(k_first + k)] : bf16{0};
    }
  };
  const u32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u;
  const u32 warp_m = warp % 2u * 32u, warp_n = warp / 2u * 16u;
  float sum[2][2][4] = {};
  fetch(0, 0);
  u32 stage = 0;
  for (u32 k_first = 0; k_first < 130u; k_first += 32u) {
    wait_for_copies();
    __syncthreads();
    if (k_first + 32u < 130u) fetch(stage ^ 1, k_first + 32u);
    #pragma unroll
    for (u32 k = 0; k < 32u; k += 16u) {
      u32 left[2][4], right[2][2];
      #pragma unroll
      for (int i = 0; i < 2; ++i) load_matrices(left[i], &a_tile[stage][warp_m + 16 * i + lane % 16u][k + lane / 16u * 8u]);
      #pragma unroll
      for (int j = 0; j < 2; j += 2) load_matrices_turned(right[j], right[j + 1], &b_tile[stage][k + lane % 16u][warp_n + 8 * j + lane / 16u * 8u]);
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        #pragma unroll
        for (int j = 0; j < 2; ++j) multiply_add_bf16(sum[i][j], left[i], right[j]);
      }
    }
    stage ^= 1;
  }
  #pragma unroll
  for (int e = 0; e < 16; ++e) {
    const int i = e / 8, j = e / 4 % 2, c = e % 4;
    const u32 m = m_first + warp_m + 16 * i + lane / 4u + c / 2 * 8;
    const u32 n = n_first + warp_n + 8 * j + lane % 4u * 2u + c % 2;
    if (m >= 200u || n >= 150u) continue;
    const int i0 = m;
    const int i2 = n;
    y[i0 * 150 + i2] = as<bf16>(sum[i][j][c]);
  }
}

