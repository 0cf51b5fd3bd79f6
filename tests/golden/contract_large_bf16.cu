// grid 128, 1, 1, block 384, 1, 1
extern "C" __global__ void __launch_bounds__(384, 1)
contract_wgmma_bf16(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
    bf16* __restrict__ y) {
  unsigned char* const a_tiles = swizzled_memory();
  unsigned char* const b_tiles = a_tiles + 4u * 16384u;
  __shared__ Barrier full[4], empty[4];
  if (threadIdx.x == 0) {
    for (u32 s = 0; s < 4u; ++s) {
      begin_barrier(&full[s], 1);
      begin_barrier(&empty[s], 8);
    }
    end_of_beginning();
  }
  __syncthreads();
  u32 stage = 0, phase = 0;
  const auto advance = [&] {
    if (++stage == 4u) stage = 0, phase ^= 1u;
  };
  if (threadIdx.x < 128u) {
    give_registers<40>();
    if (threadIdx.x != 0) return;
    for (u32 number = blockIdx.x; number < 128u; number += gridDim.x) {
      const u32 m_first = number % 16u * 128u;
      const u32 n_first = number / 16u % 8u * 256u;
      const int i0 = m_first;
      const int i2 = n_first;
      for (u32 k_first = 0; k_first < 1024u; k_first += 64u) {
        const int i1 = k_first;
        wait_for(&empty[stage], phase ^ 1u);
        arrive_expecting(&full[stage], 16384u + 32768u);
        load_tile(a_tiles + stage * 16384u, a_map, &full[stage], int(i1), int(i0));
        load_tile(b_tiles + stage * 32768u, b_map, &full[stage], int(i2), int(i1));
        load_tile(b_tiles + stage * 32768u + 8192u, b_map, &full[stage], int(i2) + 64, int(i1));
        load_tile(b_tiles + stage * 32768u + 16384u, b_map, &full[stage], int(i2) + 128, int(i1));
        load_tile(b_tiles + stage * 32768u + 24576u, b_map, &full[stage], int(i2) + 192, int(i1));
        advance();
      }
    }
    return;
  }
  take_registers<232>();
  const u32 lane = threadIdx.x % 32u, warp = threadIdx.x / 32u - 4u;
  const u32 rows_before = warp / 4u * 64u;
  Shared<float>* const out = shared_memory<float>() + 49408u + warp * 640u;
  for (u32 number = blockIdx.x; number < 128u; number += gridDim.x) {
    const u32 m_first = number % 16u * 128u;
    const u32 n_first = number / 16u % 8u * 256u;
    float sum[128] = {};
    u32 before = stage;
    for (u32 k_first = 0; k_first < 1024u; k_first += 64u) {
      const unsigned char* const a = a_tiles + stage * 16384u + rows_before * 128u;
      const unsigned char* const b = b_tiles + stage * 32768u;
      wait_for(&full[stage], phase);
      begin_products(sum);
      #pragma unroll
      for (u32 step = 0; step < 4u; ++step) {
        multiply_add_group_bf16<0, 1>(sum, matrix(a + 32u * step, 16u), matrix(b + 2048u * step, 8192u));
      }
      commit_products();
      if (k_first > 0) {
        wait_for_products<1>();
        if (lane == 0) arrive(&empty[before]);
      }
      before = stage;
      advance();
    }
    wait_for_products<0>();
    end_products(sum);
    if (lane == 0) arrive(&empty[before]);
    #pragma unroll
    for (int part = 0; part < 8; ++part) {
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int c = part * 16 + 4 * j;
        put(&out[lane / 4u * 40u + 8 * j + lane % 4u * 2u], sum[c], sum[c + 1]);
        put(&out[(lane / 4u + 8u) * 40u + 8 * j + lane % 4u * 2u], sum[c + 2], sum[c + 3]);
      }
      __syncwarp();
      #pragma unroll
      for (u32 t = lane; t < 64u; t += 32u) {
        const u32 row = t / 4u, column = t % 4u * 8u;
        const u32 m = m_first + rows_before + warp % 4u * 16u + row, n = n_first + part * 32 + column;
        const int i0 = m;
        const int i2 = n;
        float sum[8];
        take(sum, &out[row * 40u + column]);
        store(y + i0 * 2048 + i2, sum);
      }
      __syncwarp();
    }
  }
}

