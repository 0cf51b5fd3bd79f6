// The inner loops of StridedCopy: boxes of cells, moved in vector registers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "machine/cache.hpp"

namespace ein::host {

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

/// For cells of one size.
struct CopyKernels {
  BoxKernel elements, fill, fill_streaming;
  BoxKernel reverse, reverse_streaming;  // source stride minus a cell along i
  BoxKernel transpose_writing, transpose_reading, transpose_streaming;
  BoxKernel transpose_lines_writing, transpose_lines_diagonal;  // by squares of lines
  BoxKernel packed[3][3][2];                                    // [pack][count - 2][streaming]
};

}  // namespace ein::host
