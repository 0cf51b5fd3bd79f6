// grid 12, 1, 1, block 256, 1, 1
extern "C" __global__ void __launch_bounds__(256, 2)
contract_mma_bf16(const bf16* __restrict__ x0, const bf16* __restrict__ x1, bf16* __restrict__ y) {
  Shared<bf16>* const a_tile = shared_memory<bf16>();
  Shared<bf16>* const b_tile = a_tile + 10240;
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
  const bf16* const a = x0;
  const auto b_n = [&](u32 n) -> int {
    const int i2 = n;
    return i2;
  };
  const auto b_k = [&](u32 k) -> int {
    const int i1 = k;
    return i1 * 150;
  };
  const bf16* const b = x1;
  const auto fetch = [&](u32 stage, u32 k_first) {
    #pragma unroll
    for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
      const u32 k = t % 16u * 2u, m = t / 16u;
      const bool inside = m_first + m < 200u && k_first + k < 130u;
      copy_async<2>(&a_tile[(stage * 64u + m) * 40u + k], inside ? a + a_m(m_first + m) + a_k(k_first + k) : a, inside);
    }
    #pragma unroll
    for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
      const u32 n = t % 32u * 2u, k = t / 32u;
      const bool inside = n_first + n < 150u && k_first + k < 130u;
      copy_async<2>(&b_tile[(stage * 32u + k) * 72u + n], inside ? b + b_n(n_first + n) + b_k(k_first + k) : b, inside);
    }
  };
  const u32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u;
  const u32 warp_m = warp % 2u * 32u, warp_n = warp / 2u * 16u;
  float sum[2][2][4] = {};
  for (u32 s = 0; s < 3u; ++s) {
    if (s * 32u < 130u) fetch(s, s * 32u);
    commit_copies();
  }
  u32 stage = 0, next = 3u;
  for (u32 k_first = 0; k_first < 130u; k_first += 32u) {
    wait_for_copies<2>();
    __syncthreads();
    if (k_first + 96u < 130u) fetch(next, k_first + 96u);
    commit_copies();
    #pragma unroll
    for (u32 k = 0; k < 32u; k += 16u) {
      u32 left[2][4], right[2][2];
      #pragma unroll
      for (int i = 0; i < 2; ++i) load_matrices(left[i], &a_tile[(stage * 64u + warp_m + 16 * i + lane % 16u) * 40u + k + lane / 16u * 8u]);
      #pragma unroll
      for (int j = 0; j < 2; j += 2) load_matrices_turned(right[j], right[j + 1], &b_tile[(stage * 32u + k + lane % 16u) * 72u + warp_n + 8 * j + lane / 16u * 8u]);
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        #pragma unroll
        for (int j = 0; j < 2; ++j) multiply_add_bf16(sum[i][j], left[i], right[j]);
      }
    }
    next = stage;
    stage = stage == 3u ? 0u : stage + 1u;
  }
  __syncthreads();
  Shared<float>* const out = shared_memory<float>() + warp * 640u;
  #pragma unroll
  for (int part = 0; part < 2; ++part) {
    const int i = part / 1, first = part % 1 * 2;
    #pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float(&c)[4] = sum[i][first + j];
      put(&out[lane / 4u * 40u + 8 * j + lane % 4u * 2u], c[0], c[1]);
      put(&out[(lane / 4u + 8u) * 40u + 8 * j + lane % 4u * 2u], c[2], c[3]);
    }
    __syncwarp();
    #pragma unroll
    for (u32 t = lane; t < 128u; t += 32u) {
      const u32 row = t / 8u, column = t % 8u * 2u;
      const u32 m = m_first + warp_m + 16 * i + row, n = n_first + warp_n + 8 * first + column;
      if (m >= 200u || n >= 150u) continue;
      const int i0 = m;
      const int i2 = n;
      float sum[2];
      take(sum, &out[row * 40u + column]);
      store(y + i0 * 150 + i2, sum);
    }
    __syncwarp();
  }
}

