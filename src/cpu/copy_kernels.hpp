// The inner loops of StridedCopy: boxes of cells, moved in vector registers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpu/cache.hpp"

namespace ein::host {

#if defined(__AVX512F__) && defined(__AVX512BW__)
inline constexpr int copy_vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int copy_vector_bytes = 32;
#else
inline constexpr int copy_vector_bytes = 16;
#endif
inline constexpr std::int64_t longest_short_run = 16 << 10;  // memcpy takes long to begin

/// What a kernel copies: count_i × count_j cells of `run` bytes; strides in bytes. The destination
/// is the most contiguous along i, the source along j. A box to be copied soon lies `src_ahead` and
/// `dst_ahead` from this one; both are 0 where there is no need to prefetch it.
struct CopyBox {
  std::int64_t count_i, count_j, dst_i, src_i, dst_j, src_j, run, src_ahead, dst_ahead;
};
using BoxKernel = void (*)(std::byte* dst, const std::byte* src, const CopyBox& box);

/// Two to four elements side by side. zip: i is the short axis, and j packed in both; repeat: the
/// same, with source stride 0 along i; unzip: j is the short axis, and i packed in both.
enum class Pack { zip, unzip, repeat };

/// For cells of one size, a power of two bytes up to widest_copied_element.
struct CopyKernels {
  BoxKernel elements, fill, fill_streaming;
  BoxKernel transpose_writing, transpose_reading, transpose_streaming, transpose_diagonal;
  BoxKernel packed[3][3][2];  // [pack][count - 2][streaming]
};
inline constexpr int widest_copied_element = std::max(16, copy_vector_bytes / 2);
const CopyKernels& copy_kernels(std::int64_t element_bytes);

/// For larger cells, and those of other sizes.
BoxKernel copy_runs_kernel(std::int64_t run);
/// The same with streaming stores, which go around the caches.
BoxKernel streaming_runs_kernel(std::int64_t run);
/// Of any lengths, known only when it runs.
BoxKernel copy_rows_kernel(bool streaming);
/// Prefetches, to be written, the lines that a row of `run` bytes covers only in part.
void fetch_row_ends(std::byte* dst, const std::byte* src, const CopyBox& box);
/// Prefetches what lies `distance` from `rows` rows of `bytes` bytes, which may be outside of any
/// array.
void fetch_rows(const std::byte* src, std::int64_t distance, std::int64_t rows, std::int64_t stride,
                std::int64_t bytes);

/// Streaming stores are weakly ordered; this makes them visible before what the caller stores next.
void finish_streaming();

}  // namespace ein::host
