extern "C" __global__ void __launch_bounds__(256, 1)
attention_f32(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
    float* __restrict__ log_sums, float* __restrict__ out) {
  struct Tiles {
    Shared<float> left[16][65];
    Shared<float> right[16][65];
    Shared<float> weights[64][65];
    Shared<float> rows[16][65];
  };
  Tiles& tiles = shared_tiles<Tiles>();
  const u32 block = blockIdx.x;
  const u32 kept_first = (15u - block % 16u) * 64u;
  const int i1 = block / 16u % 12u;
  const int i0 = block / 16u / 12u;
  const u32 row = threadIdx.x / 16u, column = threadIdx.x % 16u;
  float out_sum[4][4] = {};
  const auto q_at = q + i0 * 768000 + i1 * 64;
  const auto k_at = k + i0 * 768000 + i1 * 64;
  const auto v_at = v + i0 * 768000 + i1 * 64;
  const auto out_at = out + i0 * 768000 + i1 * 64;
  const auto log_sums_at = log_sums + i0 * 12000 + i1 * 1000;
  float largest[4], total[4];
  for (int r = 0; r < 4; ++r) largest[r] = __uint_as_float(0xff800000u), total[r] = 0.0f;
  const u32 end = kept_first + 64u < 1000u ? kept_first + 64u : 1000u;
  for (u32 first = 0; first < end; first += 64u) {
    float s[4][4] = {};
    for (u32 d_first = 0; d_first < 64u; d_first += 16u) {
      #pragma unroll
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 d = t % 16u, r = t / 16u;
        const bool inside = kept_first + r < 1000u && d_first + d < 64u;
        tiles.left[d][r] = inside ? q_at[int(kept_first + r) * 768 + int(d_first + d)] : 0.0f;
      }
      #pragma unroll
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 d = t % 16u, r = t / 16u;
        const bool inside = first + r < 1000u && d_first + d < 64u;
        tiles.right[d][r] = inside ? k_at[int(first + r) * 768 + int(d_first + d)] : 0.0f;
      }
      __syncthreads();
      #pragma unroll
      for (int d = 0; d < 16; ++d) {
        float left[4], right[4];
        for (int r = 0; r < 4; ++r) left[r] = tiles.left[d][row + 16 * r];
        for (int n = 0; n < 4; ++n) right[n] = tiles.right[d][column + 16 * n];
        for (int r = 0; r < 4; ++r) {
          for (int n = 0; n < 4; ++n) s[r][n] += left[r] * right[n];
        }
      }
      __syncthreads();
    }
    if (!(first + 64u <= (kept_first + 1u < 1000u ? kept_first + 1u : 1000u))) {
      #pragma unroll
      for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          if (first + column + 16 * n >= 1000u || first + column + 16 * n > kept_first + row + 16 * r) s[r][n] = __uint_as_float(0xff800000u);
        }
      }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      float most = largest[r];
      #pragma unroll
      for (int n = 0; n < 4; ++n) {
        most = fmaxf(most, s[r][n]);
      }
      most = combine_lanes<16>(most, no_memory<float>(), [](float a, float b) { return fmaxf(a, b); });
      const float shift = most * 0.18033688f;
      const float correction = power_of_two(largest[r] * 0.18033688f - shift);
      largest[r] = most;
      total[r] *= correction;
      #pragma unroll
      for (int n = 0; n < 4; ++n) {
        s[r][n] = power_of_two(s[r][n] * 0.18033688f - shift);
        total[r] += s[r][n];
      }
      #pragma unroll
      for (int n = 0; n < 4; ++n) {
        out_sum[r][n] *= correction;
      }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      #pragma unroll
      for (int n = 0; n < 4; ++n) {
        tiles.weights[row + 16 * r][column + 16 * n] = s[r][n];
      }
    }
    for (u32 k_first = 0; k_first < 64u; k_first += 16u) {
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 k = t / 64u, c = t % 64u;
        tiles.rows[k][c] = first + k_first + k < 1000u ? v_at[int(first + k_first + k) * 768 + int(c)] : 0.0f;
      }
      __syncthreads();
      for (int k = 0; k < 16; ++k) {
        float left[4];
        for (int r = 0; r < 4; ++r) left[r] = tiles.weights[row + 16 * r][k_first + k];
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          const float right = tiles.rows[k][column + 16 * n];
          for (int r = 0; r < 4; ++r) out_sum[r][n] += left[r] * right;
        }
      }
      __syncthreads();
    }
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    total[r] = combine_lanes<16>(total[r], no_memory<float>(), [](float a, float b) { return a + b; });
    if (column == 0 && kept_first + row + 16 * r < 1000u) log_sums_at[int(kept_first + row + 16 * r)] = largest[r] * 0.18033688f + log2f(total[r]);
    total[r] = 1.0f / total[r];
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (kept_first + row + 16 * r >= 1000u) continue;
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      out_at[int(kept_first + row + 16 * r) * 768 + int(column + 16 * n)] = out_sum[r][n] * total[r];
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
reduce_rows_f32(const float* __restrict__ x0, const float* __restrict__ x1, float* __restrict__ y0) {
  const u32 lane = threadIdx.x % 4u;
  const u32 row = blockIdx.x * 64u + threadIdx.x / 4u;
  const int i2 = row % 12u;
  const int i1 = row / 12u % 1000u;
  const int i0 = row / 12000u;
  float t0 = 0.0f;
  #pragma unroll
  for (int p = 0; p < 4; ++p) {
    const u32 e = p * 16u + lane * 4u;
    const int i3 = e;
    float s0[4];
    load(s0, x0 + i0 * 768000 + i1 * 768 + i2 * 64 + i3);
    float s1[4];
    load(s1, x1 + i0 * 768000 + i1 * 768 + i2 * 64 + i3);
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float n0_0 = s0[j] * s1[j];
      t0 = t0 + n0_0;
    }
  }
  t0 = combine_lanes<4>(t0, no_memory<float>(), [](float a, float b) { return a + b; });
  const float r0 = t0;
  if (lane == 0) y0[i0 * 12000 + i1 + i2 * 1000] = r0;
}

extern "C" __global__ void __launch_bounds__(256, 1)
attention_queries_f32(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
    const float* __restrict__ dout, const float* __restrict__ log_sums,
    const float* __restrict__ delta, float* __restrict__ dq) {
  struct Tiles {
    Shared<float> left[16][65];
    Shared<float> right[16][65];
    Shared<float> weights[64][65];
    Shared<float> rows[16][65];
  };
  Tiles& tiles = shared_tiles<Tiles>();
  const u32 block = blockIdx.x;
  const u32 kept_first = (15u - block % 16u) * 64u;
  const int i1 = block / 16u % 12u;
  const int i0 = block / 16u / 12u;
  const u32 row = threadIdx.x / 16u, column = threadIdx.x % 16u;
  float dq_sum[4][4] = {};
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
    const bool inside = kept_first + row + 16 * r < 1000u;
    log_sum[r] = inside ? log_sums_at[int(kept_first + row + 16 * r)] : 0.0f;
    mean[r] = inside ? delta_at[int(kept_first + row + 16 * r)] : 0.0f;
  }
  const u32 end = kept_first + 64u < 1000u ? kept_first + 64u : 1000u;
  for (u32 first = 0; first < end; first += 64u) {
    float s[4][4] = {};
    for (u32 d_first = 0; d_first < 64u; d_first += 16u) {
      #pragma unroll
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 d = t % 16u, r = t / 16u;
        const bool inside = kept_first + r < 1000u && d_first + d < 64u;
        tiles.left[d][r] = inside ? q_at[int(kept_first + r) * 768 + int(d_first + d)] : 0.0f;
      }
      #pragma unroll
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 d = t % 16u, r = t / 16u;
        const bool inside = first + r < 1000u && d_first + d < 64u;
        tiles.right[d][r] = inside ? k_at[int(first + r) * 768 + int(d_first + d)] : 0.0f;
      }
      __syncthreads();
      #pragma unroll
      for (int d = 0; d < 16; ++d) {
        float left[4], right[4];
        for (int r = 0; r < 4; ++r) left[r] = tiles.left[d][row + 16 * r];
        for (int n = 0; n < 4; ++n) right[n] = tiles.right[d][column + 16 * n];
        for (int r = 0; r < 4; ++r) {
          for (int n = 0; n < 4; ++n) s[r][n] += left[r] * right[n];
        }
      }
      __syncthreads();
    }
    if (!(first + 64u <= (kept_first + 1u < 1000u ? kept_first + 1u : 1000u))) {
      #pragma unroll
      for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          if (first + column + 16 * n >= 1000u || first + column + 16 * n > kept_first + row + 16 * r) s[r][n] = __uint_as_float(0xff800000u);
        }
      }
    }
    float ds[4][4] = {};
    for (u32 d_first = 0; d_first < 64u; d_first += 16u) {
      #pragma unroll
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 d = t % 16u, r = t / 16u;
        const bool inside = kept_first + r < 1000u && d_first + d < 64u;
        tiles.left[d][r] = inside ? dout_at[int(kept_first + r) * 768 + int(d_first + d)] : 0.0f;
      }
      #pragma unroll
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 d = t % 16u, r = t / 16u;
        const bool inside = first + r < 1000u && d_first + d < 64u;
        tiles.right[d][r] = inside ? v_at[int(first + r) * 768 + int(d_first + d)] : 0.0f;
      }
      __syncthreads();
      #pragma unroll
      for (int d = 0; d < 16; ++d) {
        float left[4], right[4];
        for (int r = 0; r < 4; ++r) left[r] = tiles.left[d][row + 16 * r];
        for (int n = 0; n < 4; ++n) right[n] = tiles.right[d][column + 16 * n];
        for (int r = 0; r < 4; ++r) {
          for (int n = 0; n < 4; ++n) ds[r][n] += left[r] * right[n];
        }
      }
      __syncthreads();
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      #pragma unroll
      for (int n = 0; n < 4; ++n) {
        s[r][n] = power_of_two(s[r][n] * 0.18033688f - log_sum[r]);
        ds[r][n] = s[r][n] * (ds[r][n] - mean[r]);
      }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      #pragma unroll
      for (int n = 0; n < 4; ++n) {
        tiles.weights[row + 16 * r][column + 16 * n] = ds[r][n];
      }
    }
    for (u32 k_first = 0; k_first < 64u; k_first += 16u) {
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 k = t / 64u, c = t % 64u;
        tiles.rows[k][c] = first + k_first + k < 1000u ? k_at[int(first + k_first + k) * 768 + int(c)] : 0.0f;
      }
      __syncthreads();
      for (int k = 0; k < 16; ++k) {
        float left[4];
        for (int r = 0; r < 4; ++r) left[r] = tiles.weights[row + 16 * r][k_first + k];
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          const float right = tiles.rows[k][column + 16 * n];
          for (int r = 0; r < 4; ++r) dq_sum[r][n] += left[r] * right;
        }
      }
      __syncthreads();
    }
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (kept_first + row + 16 * r >= 1000u) continue;
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      dq_at[int(kept_first + row + 16 * r) * 768 + int(column + 16 * n)] = dq_sum[r][n] * 0.125f;
    }
  }
}

extern "C" __global__ void __launch_bounds__(256, 1)
attention_keys_f32(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
    const float* __restrict__ dout, const float* __restrict__ log_sums,
    const float* __restrict__ delta, float* __restrict__ dk, float* __restrict__ dv) {
  struct Tiles {
    Shared<float> left[16][65];
    Shared<float> right[16][65];
    Shared<float> weights[64][65];
    Shared<float> rows[16][65];
    Shared<float> log_sums[2][64], delta[2][64];
  };
  Tiles& tiles = shared_tiles<Tiles>();
  const u32 block = blockIdx.x;
  const u32 kept_first = block % 16u * 64u;
  const int i1 = block / 16u % 12u;
  const int i0 = block / 16u / 12u;
  const u32 row = threadIdx.x / 16u, column = threadIdx.x % 16u;
  float dk_sum[4][4] = {};
  float dv_sum[4][4] = {};
  const auto k_at = k + i0 * 768000 + i1 * 64;
  const auto v_at = v + i0 * 768000 + i1 * 64;
  const auto dk_at = dk + i0 * 768000 + i1 * 64;
  const auto dv_at = dv + i0 * 768000 + i1 * 64;
  const auto q_at = q + i0 * 768000 + i1 * 64;
  const auto dout_at = dout + i0 * 768000 + i1 * 64;
  const auto log_sums_at = log_sums + i0 * 12000 + i1 * 1000;
  const auto delta_at = delta + i0 * 12000 + i1 * 1000;
  const u32 begin = kept_first / 64u * 64u;
  for (u32 first = begin; first < 1000u; first += 64u) {
    const u32 stage = 0;
    for (u32 t = threadIdx.x; t < 64u; t += 256u) {
      const bool inside = first + t < 1000u;
      tiles.log_sums[stage][t] = inside ? log_sums_at[int(first + t)] : __uint_as_float(0x7f800000u);
      tiles.delta[stage][t] = inside ? delta_at[int(first + t)] : 0.0f;
    }
    float s[4][4] = {};
    for (u32 d_first = 0; d_first < 64u; d_first += 16u) {
      #pragma unroll
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 d = t % 16u, r = t / 16u;
        const bool inside = kept_first + r < 1000u && d_first + d < 64u;
        tiles.left[d][r] = inside ? k_at[int(kept_first + r) * 768 + int(d_first + d)] : 0.0f;
      }
      #pragma unroll
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 d = t % 16u, r = t / 16u;
        const bool inside = first + r < 1000u && d_first + d < 64u;
        tiles.right[d][r] = inside ? q_at[int(first + r) * 768 + int(d_first + d)] : 0.0f;
      }
      __syncthreads();
      #pragma unroll
      for (int d = 0; d < 16; ++d) {
        float left[4], right[4];
        for (int r = 0; r < 4; ++r) left[r] = tiles.left[d][row + 16 * r];
        for (int n = 0; n < 4; ++n) right[n] = tiles.right[d][column + 16 * n];
        for (int r = 0; r < 4; ++r) {
          for (int n = 0; n < 4; ++n) s[r][n] += left[r] * right[n];
        }
      }
      __syncthreads();
    }
    if (!(kept_first + 63u <= first)) {
      #pragma unroll
      for (int r = 0; r < 4; ++r) {
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          if (kept_first + row + 16 * r > first + column + 16 * n) s[r][n] = __uint_as_float(0xff800000u);
        }
      }
    }
    float ds[4][4] = {};
    for (u32 d_first = 0; d_first < 64u; d_first += 16u) {
      #pragma unroll
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 d = t % 16u, r = t / 16u;
        const bool inside = kept_first + r < 1000u && d_first + d < 64u;
        tiles.left[d][r] = inside ? v_at[int(kept_first + r) * 768 + int(d_first + d)] : 0.0f;
      }
      #pragma unroll
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 d = t % 16u, r = t / 16u;
        const bool inside = first + r < 1000u && d_first + d < 64u;
        tiles.right[d][r] = inside ? dout_at[int(first + r) * 768 + int(d_first + d)] : 0.0f;
      }
      __syncthreads();
      #pragma unroll
      for (int d = 0; d < 16; ++d) {
        float left[4], right[4];
        for (int r = 0; r < 4; ++r) left[r] = tiles.left[d][row + 16 * r];
        for (int n = 0; n < 4; ++n) right[n] = tiles.right[d][column + 16 * n];
        for (int r = 0; r < 4; ++r) {
          for (int n = 0; n < 4; ++n) ds[r][n] += left[r] * right[n];
        }
      }
      __syncthreads();
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      #pragma unroll
      for (int n = 0; n < 4; ++n) {
        s[r][n] = power_of_two(s[r][n] * 0.18033688f - tiles.log_sums[stage][column + 16 * n]);
        ds[r][n] = s[r][n] * (ds[r][n] - tiles.delta[stage][column + 16 * n]);
      }
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      #pragma unroll
      for (int n = 0; n < 4; ++n) {
        tiles.weights[row + 16 * r][column + 16 * n] = s[r][n];
      }
    }
    for (u32 k_first = 0; k_first < 64u; k_first += 16u) {
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 k = t / 64u, c = t % 64u;
        tiles.rows[k][c] = first + k_first + k < 1000u ? dout_at[int(first + k_first + k) * 768 + int(c)] : 0.0f;
      }
      __syncthreads();
      for (int k = 0; k < 16; ++k) {
        float left[4];
        for (int r = 0; r < 4; ++r) left[r] = tiles.weights[row + 16 * r][k_first + k];
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          const float right = tiles.rows[k][column + 16 * n];
          for (int r = 0; r < 4; ++r) dv_sum[r][n] += left[r] * right;
        }
      }
      __syncthreads();
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      #pragma unroll
      for (int n = 0; n < 4; ++n) {
        tiles.weights[row + 16 * r][column + 16 * n] = ds[r][n];
      }
    }
    for (u32 k_first = 0; k_first < 64u; k_first += 16u) {
      for (u32 t = threadIdx.x; t < 1024u; t += 256u) {
        const u32 k = t / 64u, c = t % 64u;
        tiles.rows[k][c] = first + k_first + k < 1000u ? q_at[int(first + k_first + k) * 768 + int(c)] : 0.0f;
      }
      __syncthreads();
      for (int k = 0; k < 16; ++k) {
        float left[4];
        for (int r = 0; r < 4; ++r) left[r] = tiles.weights[row + 16 * r][k_first + k];
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          const float right = tiles.rows[k][column + 16 * n];
          for (int r = 0; r < 4; ++r) dk_sum[r][n] += left[r] * right;
        }
      }
      __syncthreads();
    }
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (kept_first + row + 16 * r >= 1000u) continue;
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      dk_at[int(kept_first + row + 16 * r) * 768 + int(column + 16 * n)] = dk_sum[r][n] * 0.125f;
    }
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (kept_first + row + 16 * r >= 1000u) continue;
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      dv_at[int(kept_first + row + 16 * r) * 768 + int(column + 16 * n)] = dv_sum[r][n];
    }
  }
}

