// StridedCopy: moves elements between two affine layouts; the engine behind rearrange and repeat.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "cpu/copy_kernels.hpp"
#include "machine/cache.hpp"
#include "size/size_arithmetic.hpp"

namespace ein::host {

/// One loop of a copy. Strides are in elements; the source's may be 0 (broadcast) or negative (from
/// its end), the destination's are not negative.
struct CopyAxis {
  std::int64_t size, dst_stride, src_stride;
};

/// dst[Σ i_a·dst_stride_a] = src[Σ i_a·src_stride_a] for all indices i_a < size_a. Planned once, it
/// runs any number of times, on bases of any alignment. Without axes it copies one element. Source
/// and destination must not overlap, and no two indices may share a destination element.
class StridedCopy {
 public:
  /// `element_size` in bytes: 1, 2, 4 or 8. Any number of axes in any order. What reads and writes
  /// at least `stream_from` bytes writes around the caches; by default, what these could not hold,
  /// or not well enough for one thread. Tiles are made for `caches`; the result does not depend on
  /// them.
  StridedCopy(std::vector<CopyAxis> axes, std::size_t element_size, std::int64_t stream_from = -1,
              const Caches& caches = host::caches());

  /// Number of pieces of similar work, about 128 KiB each, that may run at the same time: 1 for
  /// a small copy, 0 where an axis has size 0.
  std::int64_t parts() const { return parts_; }

  /// Copies piece `part` of parts(). Thread-safe; does not allocate.
  void run(std::byte* dst, const std::byte* src, std::int64_t part) const;

 private:
  struct Reach;
  struct Limits;
  struct Place {  // where what is read and written lies; of a result of whole lines, its source
    bool beyond_caches, lines_beyond_caches, in_level_2;
  };
  struct Axis {
    std::int64_t size, dst, src;  // strides in bytes
    std::int64_t block = 1;       // how much of it a tile covers
    std::int64_t staged = 0;      // stride on the stage
    std::int64_t blocks() const { return ceil_div(size, block); }
  };
  struct Position;  // of a tile
  struct Loops {
    const std::vector<std::size_t>& axes;
    std::int64_t Axis::*dst, Axis::*src;
  };

  Reach choose_kernels(const Limits& limits, const Place& place);
  BoxKernel writing_kernel(const Limits& limits, const CopyKernels& kernels, Reach reach) const;
  std::optional<Reach> choose_order(const Limits& limits, const CopyKernels& kernels,
                                    std::int64_t in_a_place);
  bool keeps_alignment(std::int64_t alignment, std::initializer_list<std::size_t> exempt) const;
  std::vector<std::size_t> sorted_axes(std::int64_t Axis::*stride) const;
  void choose_blocks(const Limits& limits, Reach reach);
  bool plan_stage(std::int64_t largest);
  void plan_loops(std::int64_t total_bytes);

  std::int64_t extent(std::size_t axis, const Position& at) const;
  std::int64_t distance_to_next(const Position& at, std::int64_t Axis::*stride) const;
  void run_tile(std::byte* dst, const std::byte* src, const Position& at, BoxKernel kernel) const;
  void run_staged_tile(std::byte* dst, const std::byte* src, const Position& at) const;
  void write_and_fetch(std::byte* dst, const std::byte* stage, const CopyBox& row,
                       const std::byte* src, const Position& at) const;
  void run_loops(std::byte* dst, const std::byte* src, const CopyBox& box, BoxKernel kernel,
                 const Loops& loops, const Position& at) const;

  std::vector<Axis> axes_;          // the run, in bytes, then the others by destination stride
  std::size_t i_ = 1, j_ = 2;       // the axes of a kernel's box
  std::vector<std::size_t> grid_;   // axes that are cut into several blocks, slowest first
  std::vector<std::size_t> inner_;  // axes that a tile loops over around its kernel, slowest first
  CopyBox box_{};                   // strides of every box
  BoxKernel kernel_ = nullptr;
  BoxKernel streaming_ = nullptr;        // instead, where the destination is aligned
  std::uintptr_t stream_alignment_ = 1;  // as streaming_ wants it
  bool streams_ = false;                 // the output is written around the caches, if possible
  bool fetches_ = false;                 // each tile prefetches the next
  bool fetches_as_it_writes_ = false;    // prefetches the next tile while a staged one is written
  bool staged_ = false;                  // tiles are put together elsewhere, then copied row by row
  std::size_t row_axes_ = 1;             // axes before this one make such a row
  std::vector<std::size_t> rows_;  // axes of a tile that such rows are counted by, slowest first
  std::int64_t granule_ = 1;       // cells that a kernel likes to take at a time along i and j
  std::int64_t tiles_ = 0, parts_ = 0;
};

}  // namespace ein::host
