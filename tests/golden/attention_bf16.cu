extern "C" __global__ void __launch_bounds__(128, 2)
attention_bf16(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v,
    float* __restrict__ log_sums, bf16* __restrict__ out) {
  struct Tiles {
    Shared<bf16> q[128][72];
    Shared<bf16> k[2][64][72];
    Shared<bf16> v[2][64][72];
  };
  Tiles& tiles = shared_tiles<Tiles>();
  const u32 block = blockIdx.x;
  const u32 kept_first = (7u - block % 8u) * 128u;
  const int i1 = block / 8u % 12u;
  const int i0 = block / 8u / 12u;
  const u32 lane = threadIdx.x % 32u, warp_row = threadIdx.x / 32u * 32u;
  const u32 row = warp_row + lane / 4u, column = lane % 4u * 2u;
  float out_sum[2][8][4] = {};
  const auto q_at = q + i0 * 768000 + i1 * 64;
  const auto k_at = k + i0 * 768000 + i1 * 64;
  const auto v_at = v + i0 * 768000 + i1 * 64;
  const auto out_at = out + i0 * 768000 + i1 * 64;
  const auto log_sums_at = log_sums + i0 * 12000 + i1 * 1000;
  float largest[4], total[4];
  for (int r = 0; r < 4; ++r) largest[r] = __uint_as_float(0xff800000u), total[r] = 0.0f;
  const u32 end = kept_first + 128u < 1000u ? kept_first + 128u : 1000u;
  #pragma unroll
  for (u32 t = threadIdx.x; t < 1024u; t += 128u) {
    const u32 r = t / 8u, c = t % 8u * 8u;
    const bool inside = kept_first + r < 1000u;
    copy_async<8>(&tiles.q[r][c], inside ? q_at + int(kept_first + r) * 768 + int(c) : q_at, inside);
  }
  const auto fetch = [&](u32 into, u32 next) {
    #pragma unroll
    for (u32 t = threadIdx.x; t < 512u; t += 128u) {
      const u32 r = t / 8u, c = t % 8u * 8u;
      const bool inside = next + r < 1000u;
      copy_async<8>(&tiles.k[into][r][c], inside ? k_at + int(next + r) * 768 + int(c) : k_at, inside);
    }
    #pragma unroll
    for (u32 t = threadIdx.x; t < 512u; t += 128u) {
      const u32 r = t / 8u, c = t % 8u * 8u;
      const bool inside = next + r < 1000u;
      copy_async<8>(&tiles.v[into][r][c], inside ? v_at + int(next + r) * 768 + int(c) : v_at, inside);
    }
  };
  fetch(0, 0);
  u32 stage = 0;
  for (u32 first = 0; first < end; first += 64u) {
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    if (first + 64u < end) fetch(stage ^ 1, first + 64u);
    if (first <= kept_first + warp_row + 31u) {
      float s[2][8][4] = {};
      #pragma unroll
      for (u32 d = 0; d < 64u; d += 16u) {
        u32 left[2][4];
        #pragma unroll
        for (int i = 0; i < 2; ++i) load_matrices(left[i], &tiles.q[warp_row + 16 * i + lane % 16u][d + lane / 16u * 8u]);
        #pragma unroll
        for (int j = 0; j < 8; j += 2) {
          u32 right[2][2];
          load_matrices(right[0], right[1], &tiles.k[stage][8 * j + lane % 8u + lane / 16u * 8u][d + lane / 8u % 2u * 8u]);
          #pragma unroll
          for (int i = 0; i < 2; ++i) {
            multiply_add_bf16(s[i][j + 0], left[i], right[0]);
            multiply_add_bf16(s[i][j + 1], left[i], right[1]);
          }
        }
      }
      if (!(first + 64u <= (kept_first + 1u < 1000u ? kept_first + 1u : 1000u))) {
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
          #pragma unroll
          for (int n = 0; n < 16; ++n) {
            if (first + column + n / 2 * 8 + n % 2 >= 1000u || first + column + n / 2 * 8 + n % 2 > kept_first + row + r / 2 * 16 + r % 2 * 8) s[r / 2][n / 2][r % 2 * 2 + n % 2] = __uint_as_float(0xff800000u);
          }
        }
      }
      #pragma unroll
      for (int r = 0; r < 4; ++r) {
        float most = largest[r];
        #pragma unroll
        for (int n = 0; n < 16; ++n) {
          most = fmaxf(most, s[r / 2][n / 2][r % 2 * 2 + n % 2]);
        }
        most = combine_lanes<4>(most, no_memory<float>(), [](float a, float b) { return fmaxf(a, b); });
        const float shift = most * 0.18033688f;
        const float correction = power_of_two(largest[r] * 0.18033688f - shift);
        largest[r] = most;
        total[r] *= correction;
        #pragma unroll
        for (int n = 0; n < 16; ++n) {
          s[r / 2][n / 2][r % 2 * 2 + n % 2] = power_of_two(s[r / 2][n / 2][r % 2 * 2 + n % 2] * 0.18033688f - shift);
          total[r] += s[r / 2][n / 2][r % 2 * 2 + n % 2];
        }
        #pragma unroll
        for (int n = 0; n < 16; ++n) {
          out_sum[r / 2][n / 2][r % 2 * 2 + n % 2] *= correction;
        }
      }
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        u32 left[2][4];
        #pragma unroll
        for (int e = 0; e < 8; ++e) {
          const float(&pair)[4] = s[e / 4][2 * k + e % 4 / 2];
          left[e / 4][e % 4] = packed_bf16(pair[e % 2 * 2], pair[e % 2 * 2 + 1]);
        }
        #pragma unroll
        for (int j = 0; j < 8; j += 2) {
          u32 right[2][2];
          load_matrices_turned(right[0], right[1], &tiles.v[stage][16 * k + lane % 16u][8 * j + lane / 16u * 8u]);
          #pragma unroll
          for (int i = 0; i < 2; ++i) {
            multiply_add_bf16(out_sum[i][j + 0], left[i], right[0]);
            multiply_add_bf16(out_sum[i][j + 1], left[i], right[1]);
          }
        }
      }
    }
    stage ^= 1;
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    total[r] = combine_lanes<4>(total[r], no_memory<float>(), [](float a, float b) { return a + b; });
    if (column == 0 && kept_first + row + r / 2 * 16 + r % 2 * 8 < 1000u) log_sums_at[int(kept_first + row + r / 2 * 16 + r % 2 * 8)] = largest[r] * 0.18033688f + log2f(total[r]);
    total[r] = 1.0f / total[r];
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (kept_first + row + r / 2 * 16 + r % 2 * 8 >= 1000u) continue;
    #pragma unroll
    for (int n = 0; n < 16; n += 2) {
      const float pair[2] = {out_sum[r / 2][n / 2][r % 2 * 2 + n % 2] * total[r], out_sum[r / 2][(n + 1) / 2][r % 2 * 2 + (n + 1) % 2] * total[r]};
      store(out_at + int(kept_first + row + r / 2 * 16 + r % 2 * 8) * 768 + int(column + n / 2 * 8 + n % 2), pair);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
reduce_rows_f32(const bf16* __restrict__ x0, const bf16* __restrict__ x1, float* __restrict__ y0) {
  const u32 lane = threadIdx.x % 2u;
  const u32 row = blockIdx.x * 128u + threadIdx.x / 2u;
  const int i2 = row % 12u;
  const int i1 = row / 12u % 1000u;
  const int i0 = row / 12000u;
  float t0 = 0.0f;
  for (u32 first = lane * 8u; first < 64u; first += 64u) {
    const u32 last = first + 64u < 64u ? first + 64u : 64u;
    float u0 = 0.0f;
    #pragma unroll 4
    for (u32 e = first; e < last; e += 16u) {
      const int i3 = e;
      float s0[8];
      load(s0, x0 + i0 * 768000 + i1 * 768 + i2 * 64 + i3);
      float s1[8];
      load(s1, x1 + i0 * 768000 + i1 * 768 + i2 * 64 + i3);
      #pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float n0_0 = s0[j] * s1[j];
        u0 = u0 + n0_0;
      }
    }
    t0 = t0 + u0;
  }
  t0 = combine_lanes<2>(t0, no_memory<float>(), [](float a, float b) { return a + b; });
  const float r0 = t0;
  if (lane == 0) y0[i0 * 12000 + i1 + i2 * 1000] = r0;
}

extern "C" __global__ void __launch_bounds__(128, 2)
attention_queries_bf16(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v,
    const bf16* __restrict__ dout, const float* __restrict__ log_sums,
    const float* __restrict__ delta, bf16* __restrict__ dq) {
  struct Tiles {
    Shared<bf16> q[128][72];
    Shared<bf16> k[2][64][72];
    Shared<bf16> v[2][64][72];
    Shared<bf16> dout[128][72];
  };
  Tiles& tiles = shared_tiles<Tiles>();
  const u32 block = blockIdx.x;
  const u32 kept_first = (7u - block % 8u) * 128u;
  const int i1 = block / 8u % 12u;
  const int i0 = block / 8u / 12u;
  const u32 lane = threadIdx.x % 32u, warp_row = threadIdx.x / 32u * 32u;
  const u32 row = warp_row + lane / 4u, column = lane % 4u * 2u;
  float dq_sum[2][8][4] = {};
  const auto q_at = q + i0 * 768000 + i1 * 64;
  const auto k_at = k + i0 * 768000 + i1 * 64;
  const auto v_at = v + i0 * 768000 + i1 * 64;
  const auto dout_at = dout + i0 * 768000 + i1 * 64;
  const auto dq_at = dq + i0 * 768000 + i1 * 64;
  const auto log_sums_at = log_sums + i0 * 12000 + i1 * 1000;
  const auto delta_at = delta + i0 * 12000 + i1 * 1000;
  float log_sum[4], mean[4];
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    const bool inside = kept_first + row + r / 2 * 16 + r % 2 * 8 < 1000u;
    log_sum[r] = inside ? log_sums_at[int(kept_first + row + r / 2 * 16 + r % 2 * 8)] : 0.0f;
    mean[r] = inside ? delta_at[int(kept_first + row + r / 2 * 16 + r % 2 * 8)] : 0.0f;
  }
  const u32 end = kept_first + 128u < 1000u ? kept_first + 128u : 1000u;
  #pragma unroll
  for (u32 t = threadIdx.x; t < 1024u; t += 128u) {
    const u32 r = t / 8u, c = t % 8u * 8u;
    const bool inside = kept_first + r < 1000u;
    copy_async<8>(&tiles.q[r][c], inside ? q_at + int(kept_first + r) * 768 + int(c) : q_at, inside);
  }
  #pragma unroll
  for (u32 t = threadIdx.x; t < 1024u; t += 128u) {
    const u32 r = t / 8u, c = t % 8u * 8u;
    const bool inside = kept_first + r < 1000u;
    copy_async<8>(&tiles.dout[r][c], inside ? dout_at + int(kept_first + r) * 768 + int(c) : dout_at, inside);
  }
  const auto fetch = [&](u32 into, u32 next) {
    #pragma unroll
    for (u32 t = threadIdx.x; t < 512u; t += 128u) {
      const u32 r = t / 8u, c = t % 8u * 8u;
      const bool inside = next + r < 1000u;
      copy_async<8>(&tiles.k[into][r][c], inside ? k_at + int(next + r) * 768 + int(c) : k_at, inside);
    }
    #pragma unroll
    for (u32 t = threadIdx.x; t < 512u; t += 128u) {
      const u32 r = t / 8u, c = t % 8u * 8u;
      const bool inside = next + r < 1000u;
      copy_async<8>(&tiles.v[into][r][c], inside ? v_at + int(next + r) * 768 + int(c) : v_at, inside);
    }
  };
  fetch(0, 0);
  u32 stage = 0;
  for (u32 first = 0; first < end; first += 64u) {
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    if (first + 64u < end) fetch(stage ^ 1, first + 64u);
    if (first <= kept_first + warp_row + 31u) {
      float s[2][8][4] = {};
      #pragma unroll
      for (u32 d = 0; d < 64u; d += 16u) {
        u32 left[2][4];
        #pragma unroll
        for (int i = 0; i < 2; ++i) load_matrices(left[i], &tiles.q[warp_row + 16 * i + lane % 16u][d + lane / 16u * 8u]);
        #pragma unroll
        for (int j = 0; j < 8; j += 2) {
          u32 right[2][2];
          load_matrices(right[0], right[1], &tiles.k[stage][8 * j + lane % 8u + lane / 16u * 8u][d + lane / 8u % 2u * 8u]);
          #pragma unroll
          for (int i = 0; i < 2; ++i) {
            multiply_add_bf16(s[i][j + 0], left[i], right[0]);
            multiply_add_bf16(s[i][j + 1], left[i], right[1]);
          }
        }
      }
      if (!(first + 64u <= (kept_first + 1u < 1000u ? kept_first + 1u : 1000u))) {
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
          #pragma unroll
          for (int n = 0; n < 16; ++n) {
            if (first + column + n / 2 * 8 + n % 2 >= 1000u || first + column + n / 2 * 8 + n % 2 > kept_first + row + r / 2 * 16 + r % 2 * 8) s[r / 2][n / 2][r % 2 * 2 + n % 2] = __uint_as_float(0xff800000u);
          }
        }
      }
      float ds[2][8][4] = {};
      #pragma unroll
      for (u32 d = 0; d < 64u; d += 16u) {
        u32 left[2][4];
        #pragma unroll
        for (int i = 0; i < 2; ++i) load_matrices(left[i], &tiles.dout[warp_row + 16 * i + lane % 16u][d + lane / 16u * 8u]);
        #pragma unroll
        for (int j = 0; j < 8; j += 2) {
          u32 right[2][2];
          load_matrices(right[0], right[1], &tiles.v[stage][8 * j + lane % 8u + lane / 16u * 8u][d + lane / 8u % 2u * 8u]);
          #pragma unroll
          for (int i = 0; i < 2; ++i) {
            multiply_add_bf16(ds[i][j + 0], left[i], right[0]);
            multiply_add_bf16(ds[i][j + 1], left[i], right[1]);
          }
        }
      }
      #pragma unroll
      for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int n = 0; n < 16; ++n) {
          s[r / 2][n / 2][r % 2 * 2 + n % 2] = power_of_two(s[r / 2][n / 2][r % 2 * 2 + n % 2] * 0.18033688f - log_sum[r]);
          ds[r / 2][n / 2][r % 2 * 2 + n % 2] = s[r / 2][n / 2][r % 2 * 2 + n % 2] * (ds[r / 2][n / 2][r % 2 * 2 + n % 2] - mean[r]);
        }
      }
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        u32 left[2][4];
        #pragma unroll
        for (int e = 0; e < 8; ++e) {
          const float(&pair)[4] = ds[e / 4][2 * k + e % 4 / 2];
          left[e / 4][e % 4] = packed_bf16(pair[e % 2 * 2], pair[e % 2 * 2 + 1]);
        }
        #pragma unroll
        for (int j = 0; j < 8; j += 2) {
          u32 right[2][2];
          load_matrices_turned(right[0], right[1], &tiles.k[stage][16 * k + lane % 16u][8 * j + lane / 16u * 8u]);
          #pragma unroll
          for (int i = 0; i < 2; ++i) {
            multiply_add_bf16(dq_sum[i][j + 0], left[i], right[0]);
            multiply_add_bf16(dq_sum[i][j + 1], left[i], right[1]);
          }
        }
      }
    }
    stage ^= 1;
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (kept_first + row + r / 2 * 16 + r % 2 * 8 >= 1000u) continue;
    #pragma unroll
    for (int n = 0; n < 16; n += 2) {
      const float pair[2] = {dq_sum[r / 2][n / 2][r % 2 * 2 + n % 2] * 0.125f, dq_sum[r / 2][(n + 1) / 2][r % 2 * 2 + (n + 1) % 2] * 0.125f};
      store(dq_at + int(kept_first + row + r / 2 * 16 + r % 2 * 8) * 768 + int(column + n / 2 * 8 + n % 2), pair);
    }
  }
}

extern "C" __global__ void __launch_bounds__(128, 2)
attention_keys_bf16(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v,
    const bf16* __restrict__ dout, const float* __restrict__ log_sums,
    const float* __restrict__ delta, bf16* __restrict__ dk, bf16* __restrict__ dv) {
  struct Tiles {
    Shared<bf16> q[2][32][72];
    Shared<bf16> k[128][72];
    Shared<bf16> v[128][72];
    Shared<bf16> dout[2][32][72];
    Shared<float> log_sums[2][32], delta[2][32];
  };
  Tiles& tiles = shared_tiles<Tiles>();
  const u32 block = blockIdx.x;
  const u32 kept_first = block % 8u * 128u;
  const int i1 = block / 8u % 12u;
  const int i0 = block / 8u / 12u;
  const u32 lane = threadIdx.x % 32u, warp_row = threadIdx.x / 32u * 32u;
  const u32 row = warp_row + lane / 4u, column = lane % 4u * 2u;
  float dk_sum[2][8][4] = {};
  float dv_sum[2][8][4] = {};
  const auto k_at = k + i0 * 768000 + i1 * 64;
  const auto v_at = v + i0 * 768000 + i1 * 64;
  const auto dk_at = dk + i0 * 768000 + i1 * 64;
  const auto dv_at = dv + i0 * 768000 + i1 * 64;
  #pragma unroll
  for (u32 t = threadIdx.x; t < 1024u; t += 128u) {
    const u32 r = t / 8u, c = t % 8u * 8u;
    const bool inside = kept_first + r < 1000u;
    copy_async<8>(&tiles.k[r][c], inside ? k_at + int(kept_first + r) * 768 + int(c) : k_at, inside);
  }
  #pragma unroll
  for (u32 t = threadIdx.x; t < 1024u; t += 128u) {
    const u32 r = t / 8u, c = t % 8u * 8u;
    const bool inside = kept_first + r < 1000u;
    copy_async<8>(&tiles.v[r][c], inside ? v_at + int(kept_first + r) * 768 + int(c) : v_at, inside);
  }
  const auto q_at = q + i0 * 768000 + i1 * 64;
  const auto dout_at = dout + i0 * 768000 + i1 * 64;
  const auto log_sums_at = log_sums + i0 * 12000 + i1 * 1000;
  const auto delta_at = delta + i0 * 12000 + i1 * 1000;
  const u32 begin = kept_first / 32u * 32u;
  const auto fetch = [&](u32 into, u32 next) {
    #pragma unroll
    for (u32 t = threadIdx.x; t < 256u; t += 128u) {
      const u32 r = t / 8u, c = t % 8u * 8u;
      const bool inside = next + r < 1000u;
      copy_async<8>(&tiles.q[into][r][c], inside ? q_at + int(next + r) * 768 + int(c) : q_at, inside);
    }
    #pragma unroll
    for (u32 t = threadIdx.x; t < 256u; t += 128u) {
      const u32 r = t / 8u, c = t % 8u * 8u;
      const bool inside = next + r < 1000u;
      copy_async<8>(&tiles.dout[into][r][c], inside ? dout_at + int(next + r) * 768 + int(c) : dout_at, inside);
    }
    for (u32 t = threadIdx.x; t < 32u; t += 128u) {
      const bool inside = next + t < 1000u;
      tiles.log_sums[into][t] = inside ? log_sums_at[int(next + t)] : __uint_as_float(0x7f800000u);
      tiles.delta[into][t] = inside ? delta_at[int(next + t)] : 0.0f;
    }
  };
  fetch(0, begin);
  u32 stage = 0;
  for (u32 first = begin; first < 1000u; first += 32u) {
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    if (first + 32u < 1000u) fetch(stage ^ 1, first + 32u);
    if (kept_first + warp_row <= first + 31u) {
      float s[2][4][4] = {};
      #pragma unroll
      for (u32 d = 0; d < 64u; d += 16u) {
        u32 left[2][4];
        #pragma unroll
        for (int i = 0; i < 2; ++i) load_matrices(left[i], &tiles.k[warp_row + 16 * i + lane % 16u][d + lane / 16u * 8u]);
        #pragma unroll
        for (int j = 0; j < 4; j += 2) {
          u32 right[2][2];
          load_matrices(right[0], right[1], &tiles.q[stage][8 * j + lane % 8u + lane / 16u * 8u][d + lane / 8u % 2u * 8u]);
          #pragma unroll
          for (int i = 0; i < 2; ++i) {
            multiply_add_bf16(s[i][j + 0], left[i], right[0]);
            multiply_add_bf16(s[i][j + 1], left[i], right[1]);
          }
        }
      }
      if (!(kept_first + 127u <= first)) {
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
          #pragma unroll
          for (int n = 0; n < 8; ++n) {
            if (kept_first + row + r / 2 * 16 + r % 2 * 8 > first + column + n / 2 * 8 + n % 2) s[r / 2][n / 2][r % 2 * 2 + n % 2] = __uint_as_float(0xff800000u);
          }
        }
      }
      float ds[2][4][4] = {};
      #pragma unroll
      for (u32 d = 0; d < 64u; d += 16u) {
        u32 left[2][4];
        #pragma unroll
        for (int i = 0; i < 2; ++i) load_matrices(left[i], &tiles.v[warp_row + 16 * i + lane % 16u][d + lane / 16u * 8u]);
        #pragma unroll
        for (int j = 0; j < 4; j += 2) {
          u32 right[2][2];
          load_matrices(right[0], right[1], &tiles.dout[stage][8 * j + lane % 8u + lane / 16u * 8u][d + lane / 8u % 2u * 8u]);
          #pragma unroll
          for (int i = 0; i < 2; ++i) {
            multiply_add_bf16(ds[i][j + 0], left[i], right[0]);
            multiply_add_bf16(ds[i][j + 1], left[i], right[1]);
          }
        }
      }
      #pragma unroll
      for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int n = 0; n < 8; ++n) {
          s[r / 2][n / 2][r % 2 * 2 + n % 2] = power_of_two(s[r / 2][n / 2][r % 2 * 2 + n % 2] * 0.18033688f - tiles.log_sums[stage][column + n / 2 * 8 + n % 2]);
          ds[r / 2][n / 2][r % 2 * 2 + n % 2] = s[r / 2][n / 2][r % 2 * 2 + n % 2] * (ds[r / 2][n / 2][r % 2 * 2 + n % 2] - tiles.delta[stage][column + n / 2 * 8 + n % 2]);
        }
      }
      #pragma unroll
      for (int k = 0; k < 2; ++k) {
        u32 left[2][4];
        #pragma unroll
        for (int e = 0; e < 8; ++e) {
          const float(&pair)[4] = s[e / 4][2 * k + e % 4 / 2];
          left[e / 4][e % 4] = packed_bf16(pair[e % 2 * 2], pair[e % 2 * 2 + 1]);
        }
        #pragma unroll
        for (int j = 0; j < 8; j += 2) {
          u32 right[2][2];
          load_matrices_turned(right[0], right[1], &tiles.dout[stage][16 * k + lane % 16u][8 * j + lane / 16u * 8u]);
          #pragma unroll
          for (int i = 0; i < 2; ++i) {
            multiply_add_bf16(dv_sum[i][j + 0], left[i], right[0]);
            multiply_add_bf16(dv_sum[i][j + 1], left[i], right[1]);
          }
        }
      }
      #pragma unroll
      for (int k = 0; k < 2; ++k) {
        u32 left[2][4];
        #pragma unroll
        for (int e = 0; e < 8; ++e) {
          const float(&pair)[4] = ds[e / 4][2 * k + e % 4 / 2];
          left[e / 4][e % 4] = packed_bf16(pair[e % 2 * 2], pair[e % 2 * 2 + 1]);
        }
        #pragma unroll
        for (int j = 0; j < 8; j += 2) {
          u32 right[2][2];
          load_matrices_turned(right[0], right[1], &tiles.q[stage][16 * k + lane % 16u][8 * j + lane / 16u * 8u]);
          #pragma unroll
          for (int i = 0; i < 2; ++i) {
            multiply_add_bf16(dk_sum[i][j + 0], left[i], right[0]);
            multiply_add_bf16(dk_sum[i][j + 1], left[i], right[1]);
          }
        }
      }
    }
    stage ^= 1;
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (kept_first + row + r / 2 * 16 + r % 2 * 8 >= 1000u) continue;
    #pragma unroll
    for (int n = 0; n < 16; n += 2) {
      const float pair[2] = {dk_sum[r / 2][n / 2][r % 2 * 2 + n % 2] * 0.125f, dk_sum[r / 2][(n + 1) / 2][r % 2 * 2 + (n + 1) % 2] * 0.125f};
      store(dk_at + int(kept_first + row + r / 2 * 16 + r % 2 * 8) * 768 + int(column + n / 2 * 8 + n % 2), pair);
    }
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (kept_first + row + r / 2 * 16 + r % 2 * 8 >= 1000u) continue;
    #pragma unroll
    for (int n = 0; n < 16; n += 2) {
      const float pair[2] = {dv_sum[r / 2][n / 2][r % 2 * 2 + n % 2], dv_sum[r / 2][(n + 1) / 2][r % 2 * 2 + (n + 1) % 2]};
      store(dv_at + int(kept_first + row + r / 2 * 16 + r % 2 * 8) * 768 + int(column + n / 2 * 8 + n % 2), pair);
    }
  }
}

