// Numbers of bf16 in pairs, as instructions that multiply them want them. For AVX-512 alone.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "cpu/level/gemm_kernel.hpp"
#include "cpu/level/gemm_pack.hpp"
#include "size/size_arithmetic.hpp"

namespace ein::host::EIN_LEVEL {

/// Pairs in a vector.
inline constexpr std::int64_t pair_width = vector_width<float>;

/// Two neighbours along the depth.
using Pair = std::uint32_t;

inline Pair pair(bf16 low, bf16 high) { return low.bits | static_cast<Pair>(high.bits) << 16; }

/// Two rows that lie so many apart from this one and the next.
inline void fetch_rows_ahead(const bf16* from, std::int64_t row_stride) {
  constexpr std::int64_t rows = 16;
  _mm_prefetch(from + rows * row_stride, _MM_HINT_T0);
  _mm_prefetch(from + (rows + 1) * row_stride, _MM_HINT_T0);
}

/// `count` <= 16 columns of contiguous rows as rows of `padded` pairs, of which the columns and
/// zeros behind them, up to 16, are written.
inline void pack_vector(const bf16* from, std::int64_t row_stride, std::int64_t rows,
                        std::int64_t count, Pair* to, std::int64_t padded) {
  const __mmask16 lanes = first_lanes(count), written = first_lanes(std::min(pair_width, padded));
  const auto row = [&](const bf16* at) {
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, at));
  };
  for (; rows > 1; rows -= 2, from += 2 * row_stride, to += padded) {
    fetch_rows_ahead(from, row_stride);
    _mm512_mask_storeu_epi32(
        to, written, _mm512_or_si512(row(from), _mm512_slli_epi32(row(from + row_stride), 16)));
  }
  if (rows > 0) _mm512_mask_storeu_epi32(to, written, row(from));
}

/// tile_columns columns of contiguous rows, of which there is an even number, as rows of pairs.
/// fetch(from) is called for each two rows.
template <class Fetch>
[[gnu::always_inline]] inline void pack_tile(const bf16* from, std::int64_t row_stride,
                                             std::int64_t rows, Pair* to, const Fetch& fetch) {
  static_assert(tile_columns<float> == 2 * pair_width);
  const auto index = [](int first) {
    alignas(64) std::uint16_t lanes[32];
    for (int i = 0; i < 16; ++i) {
      lanes[2 * i] = static_cast<std::uint16_t>(first + i);
      lanes[2 * i + 1] = static_cast<std::uint16_t>(32 + first + i);
    }
    return _mm512_load_si512(lanes);
  };
  const __m512i left = index(0), right = index(16);
  for (; rows > 0; rows -= 2, from += 2 * row_stride, to += 2 * pair_width) {
    fetch(from);
    const __m512i low = _mm512_loadu_si512(from), high = _mm512_loadu_si512(from + row_stride);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(low, left, high));
    _mm512_storeu_si512(to + pair_width, _mm512_permutex2var_epi16(low, right, high));
  }
}

/// The matrix m, rows along the depth and at most tile_columns columns, as rows of `padded` pairs,
/// zeros behind the columns and behind an odd depth.
[[gnu::noinline]] inline void pack_pairs(const MatrixRef<const bf16>& m, Pair* to,
                                         std::int64_t padded) {
  const std::int64_t pairs = ceil_div(m.rows, 2);
  if (m.col_stride == 1) {
    if (m.cols == 2 * pair_width && m.rows % 2 == 0) {
      return pack_tile(m.data, m.row_stride, m.rows, to,
                       [&](const bf16* from) { fetch_rows_ahead(from, m.row_stride); });
    }
    for (std::int64_t j = 0; j < m.cols; j += pair_width) {
      pack_vector(m.data + j, m.row_stride, m.rows, std::min(pair_width, m.cols - j), to + j,
                  padded);
    }
    return;
  }
  std::int64_t done = 0;
  if (m.row_stride == 1 && padded % pair_width == 0) {
    for (; m.rows / 2 - done >= pair_width; done += pair_width) {
      for (std::int64_t j = 0; j < m.cols; j += pair_width) {
        const bf16* const from = m.data + 2 * done + j * m.col_stride;
        const auto row = [&](int i) {
          return i < m.cols - j ? load(reinterpret_cast<const float*>(from + i * m.col_stride))
                                : Vector<float>{};
        };
        transpose_square(row, reinterpret_cast<float*>(to + done * padded + j), padded);
      }
    }
  }
  for (std::int64_t p = done; p < pairs; ++p) {
    const bf16* const low = m.data + 2 * p * m.row_stride;
    const bool has_high = 2 * p + 1 < m.rows;
    Pair* const row = to + p * padded;
    for (std::int64_t j = 0; j < m.cols; ++j) {
      const bf16* const at = low + j * m.col_stride;
      row[j] = pair(*at, has_high ? at[m.row_stride] : bf16{0});
    }
    std::fill(row + m.cols, row + padded, 0);
  }
}

}  // namespace ein::host::EIN_LEVEL
