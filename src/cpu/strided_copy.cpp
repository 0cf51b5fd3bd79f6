#include "cpu/strided_copy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "cpu/level.hpp"
#include "cpu/loops.hpp"
#include "machine/parallel.hpp"
#include "size/ask.hpp"

namespace ein::host {
namespace {

using std::int64_t;

// How many of `rows` lines, `stride` apart, share a place in the level-1 cache at most.
int64_t most_in_a_place(int64_t rows, int64_t stride, int64_t way) {
  std::array<int64_t, 64> lines{};
  for (int64_t row = 0; row < rows; ++row) ++lines[row * stride % way * lines.size() / way];
  return *std::max_element(lines.begin(), lines.end());
}

// From how many bytes on the result passes by the caches: any one by what it reads and writes; one
// of whole lines also by twice what it reads.
struct StreamFrom {
  int64_t any, lines;
};

// Several threads are faster in the caches as long as these hold everything, since they share the
// way to memory. One thread gets little more of the last-level cache than of memory where it also
// reads much; this is measured.
StreamFrom default_stream_from(int64_t l3) {
  return num_threads() > 1 ? StreamFrom{l3, l3} : StreamFrom{l3 / 8 * 7, l3 / 2};
}

// About `target`, such that the blocks of an axis are alike.
int64_t balanced_block(int64_t size, int64_t target, int64_t granule) {
  if (target >= size) return size;
  const int64_t even = ceil_div(size, ceil_div(size, std::max<int64_t>(target, 1)));
  return std::min(size, ceil_div(even, granule) * granule);
}

}  // namespace

// --- planning ---

// A tile covers at least `dst` bytes in a row of the destination and `src` of the source, where
// there are as many.
struct StridedCopy::Reach {
  int64_t dst, src;
};

constexpr int64_t page_bytes = 4096;
// Prefetchers of processors follow a row to the end of its page at most: from half a page on, most
// of a row is foreseen.
constexpr int64_t long_row = page_bytes / 2;
// The ends of a run share their lines with others and are written through the caches. With four
// lines, at least three of five are streamed.
constexpr int64_t shortest_streamed_run = 4 * line_bytes;
// A row is copied twice for the sake of its whole lines: at least one.
constexpr int64_t shortest_staged_row = 2 * line_bytes;
// On a thread's stack.
constexpr int64_t largest_stage = 96 << 10;
// Taking a piece from the pool takes a thread less than a tenth of the time to copy so much.
constexpr int64_t part_bytes = elements_per_part * int64_t{sizeof(float)};

// Sizes in bytes, in parts of the caches. The parts were measured with 48 KiB in 12 ways, 1 MiB and
// 32 MiB (Zen 5), and give what is in brackets there; with 32 KiB in 8 ways (Zen 4) the same parts
// are faster than the same sizes: bench/results/2026-11-24-copies.md.
struct StridedCopy::Limits {
  // What a tile reads and writes takes two thirds of level 1, and so it does with the next tile's,
  // if that is prefetched. [16 KiB, 8 KiB]
  int64_t tile, fetched_tile;
  // On the stage rows lie apart, but six times a tile is mostly gaps. [96 KiB]
  int64_t stage;
  // Lines whose addresses differ by multiples of `way` compete for the ways. A third of these may
  // be asked for beside other lines, two thirds by a square alone. [4 KiB, 4, 8]
  int64_t way, many_in_a_place, some_in_a_place;
  // A matrix of which level 1 keeps most. [64 KiB]
  int64_t small_matrix;
  // Of what is written: level 2 holds enough of smaller copies, and prefetching would only delay
  // them. [4 MiB]
  int64_t fetch_from;
  // A piece of a run that level 2 holds with its source several times. [128 KiB]
  int64_t longest_run;

  explicit Limits(const Caches& caches)
      : tile(power_of_two(caches.l1) / 2),
        fetched_tile(tile / 2),
        stage(std::min(6 * tile, largest_stage)),
        way(caches.l1_way),
        many_in_a_place(power_of_two(caches.l1 / way)),
        some_in_a_place(ceil_div(many_in_a_place, 2)),
        small_matrix(4 * tile),
        fetch_from(4 * caches.l2),
        longest_run(std::max(caches.l2 / 8 / line_bytes, int64_t{1}) * line_bytes) {}

  // A row of 16 lines, of as many elements of 4 bytes as a line has, is a tile.
  Reach cached() const { return {row(16), line_bytes}; }
  Reach diagonal() const { return {row(16), row(8)}; }
  Reach long_rows() const { return {row(64), 2 * line_bytes}; }
  Reach long_source_rows() const { return {row(16), row(16)}; }
  Reach staged() const { return {row(8), 2 * line_bytes}; }
  Reach crowded() const { return {row(8), row(4)}; }
  Reach streaming() const { return {row(16), 2 * line_bytes}; }
  // Squares of narrow elements are wide: fewer rows of them fit level 1.
  Reach streaming_staged(int64_t step) const {
    return {std::min(row(32), tile * 2 / step), line_bytes};
  }
  Reach runs() const { return {row(4), row(4)}; }
  Reach streaming_runs() const { return {row(8), row(64)}; }
  Reach streaming_long_runs() const { return {row(16), row(256)}; }

 private:
  static int64_t power_of_two(int64_t most) {
    return static_cast<int64_t>(std::bit_floor(static_cast<std::uint64_t>(most)));
  }
  // So many lines where a tile has 256 of them.
  int64_t row(int64_t lines) const {
    return std::max<int64_t>(lines * tile / (256 * line_bytes), 1) * line_bytes;
  }
};

constexpr std::size_t max_axes = 66;  // 63 of size 2 span all of memory

// Not cleared: that would cost more than many a small copy.
struct StridedCopy::Position {
  int64_t block[max_axes];  // by axis: which of its blocks
};

StridedCopy::StridedCopy(std::vector<CopyAxis> axes, std::size_t element_size,
                         std::int64_t stream_from, const Caches& caches) {
  assert(std::has_single_bit(element_size) && element_size <= 8);
  const auto element = static_cast<int64_t>(element_size);
  int64_t total_bytes = element, read_bytes = element;
  for (const CopyAxis& axis : axes) {
    assert(axis.size >= 0 && axis.dst_stride >= 0);
    if (axis.size == 0) return;
  }
  for (const CopyAxis& axis : axes) {
    total_bytes *= axis.size;
    if (axis.src_stride != 0) read_bytes *= axis.size;
  }
  std::erase_if(axes, [](const CopyAxis& axis) { return axis.size == 1; });
  std::sort(axes.begin(), axes.end(),
            [](const CopyAxis& a, const CopyAxis& b) { return a.dst_stride < b.dst_stride; });

  axes_.push_back({element, 1, 1});
  for (const CopyAxis& axis : axes) {
    const int64_t dst = axis.dst_stride * element, src = axis.src_stride * element;
    Axis& last = axes_.back();
    if (dst == last.dst * last.size && src == last.src * last.size) {
      last.size *= axis.size;
    } else {
      axes_.push_back({axis.size, dst, src});
    }
  }
  while (axes_.size() < 3) axes_.push_back({1, 0, 0});
  assert(axes_.size() <= max_axes);

  const StreamFrom from =
      stream_from < 0 ? default_stream_from(caches.l3) : StreamFrom{stream_from, stream_from};
  const Limits limits(caches);
  const int64_t moved = total_bytes + read_bytes;
  fetches_ = total_bytes >= limits.fetch_from;
  const Place place{moved >= from.any, 2 * read_bytes >= from.lines, moved <= caches.l2};
  choose_blocks(limits, choose_kernels(limits, place));
  if (staged_ && !plan_stage(limits.stage)) staged_ = false;
  plan_loops(total_bytes);
}

auto StridedCopy::choose_kernels(const Limits& limits, const Place& place) -> Reach {
  const Axis& i = axes_[1];
  for (std::size_t a = 3; a < axes_.size(); ++a) {
    if (axes_[a].src != 0 &&
        (axes_[j_].src == 0 || std::abs(axes_[a].src) < std::abs(axes_[j_].src)))
      j_ = a;
  }
  const Axis& j = axes_[j_];
  const int64_t run = axes_[0].size;
  const bool permuted = j.src != 0 && std::abs(j.src) < std::abs(i.src);
  const auto stream_with = [&](BoxKernel kernel, int64_t alignment) {
    streaming_ = kernel;
    stream_alignment_ = static_cast<std::uintptr_t>(alignment);
  };
  bool stream = streams_ = place.beyond_caches;
  // Parts of lines are put together on a stage; in level 2 they are as well written in place.
  const bool is_far = !place.in_level_2;

  if (run > level().copies.widest_element ||
      !std::has_single_bit(static_cast<std::uint64_t>(run))) {
    kernel_ = level().copies.runs(run);
    const bool lines = run % line_bytes == 0 && keeps_alignment(line_bytes, {});
    stream = streams_ = stream || (lines && place.lines_beyond_caches);
    if (stream && (lines || run >= shortest_streamed_run)) {
      stream_with(level().copies.streaming_runs(run),
                  run >= shortest_streamed_run ? 1 : line_bytes);
    } else {
      staged_ = permuted && (stream || (run < line_bytes && is_far));
    }
    // Neither streamed writes nor those to the stage wait for anything, so reading is in order.
    if (streaming_ != nullptr || staged_) std::swap(i_, j_);
    if (streaming_ != nullptr) {
      return run < shortest_streamed_run ? limits.streaming_runs() : limits.streaming_long_runs();
    }
    if (staged_) return stream ? limits.streaming_staged(1) : limits.staged();
    return limits.runs();
  }

  const CopyKernels& kernels = level().copies.kernels(run);
  const int64_t step = line_bytes / run;
  const auto packs = [&](const Axis& few, const Axis& many) {
    return run <= 8 && few.size >= 2 && few.size <= 4 && many.size >= step && j.src == run;
  };
  const auto pack = [&](Pack pack, int64_t count, std::size_t many) {
    const auto& pair = kernels.packed[static_cast<int>(pack)][count - 2];
    kernel_ = pair[0];
    granule_ = step;
    if (stream && keeps_alignment(line_bytes, {1, many})) {
      stream_with(pair[1], line_bytes);
    } else {
      staged_ = stream;
    }
    return staged_ ? limits.streaming_staged(1) : stream ? limits.streaming() : limits.cached();
  };

  kernel_ = kernels.elements;
  if (i.size == 1 || i.dst != run) return limits.cached();
  if (packs(i, j) && j.dst == i.size * run) {
    return pack(i.src == 0 ? Pack::repeat : Pack::zip, i.size, j_);
  }
  if (packs(j, i) && i.src == j.size * run) return pack(Pack::unzip, j.size, 1);
  if (i.src == 0 && kernels.fill != nullptr) {
    kernel_ = kernels.fill;
    if (stream && i.size * run >= shortest_streamed_run && keeps_alignment(run, {}))
      stream_with(kernels.fill_streaming, run);
    return stream ? limits.streaming() : limits.cached();
  }
  if (i.src == -run && kernels.reverse != nullptr) {
    kernel_ = kernels.reverse;
    granule_ = step;
    if (stream && i.size * run >= shortest_streamed_run && keeps_alignment(run, {}))
      stream_with(kernels.reverse_streaming, run);
    return stream ? limits.streaming_long_runs() : limits.cached();
  }
  if (j.src != run) {
    staged_ = permuted && (stream || is_far);
    if (!staged_) return limits.cached();
    return stream ? limits.streaming_staged(1) : limits.staged();
  }

  granule_ = step;
  if ((stream || place.lines_beyond_caches) && i.size % step == 0 &&
      keeps_alignment(line_bytes, {1})) {
    stream = streams_ = true;
    if (level().vector_bytes == line_bytes) {
      kernel_ = kernels.transpose_writing;
      stream_with(kernels.transpose_streaming, line_bytes);
      return limits.streaming();
    }  // narrower vectors make lines on the stage
  }
  const int64_t in_a_place = most_in_a_place(step, j.dst, limits.way);
  if (!stream) {
    if (const auto reach = choose_order(limits, kernels, in_a_place)) return *reach;
  }
  // Half the lines of a square in one place: they push each other out before they are full.
  const bool crowded = j.size >= step && in_a_place >= std::max(step / 2, limits.many_in_a_place);
  staged_ = stream || crowded || (i.size * run < line_bytes && is_far);
  const bool read_rows = staged_ || (!stream && i.src % limits.way == 0);
  kernel_ =
      read_rows ? kernels.transpose_reading : writing_kernel(limits, kernels, limits.cached());
  if (stream) return limits.streaming_staged(step);
  // Whole lines of more of each source row; the tile still fits the level-1 cache, and prefetching
  // only delays it. Measured for elements of 4 bytes; others gain nothing.
  if (crowded && run == 4) {
    fetches_ = false;
    return limits.crowded();
  }
  return read_rows ? limits.staged() : limits.cached();
}

// Of a transpose that goes along rows of the destination. Where vectors are narrower than lines, a
// row of squares reads parts of lines, and the next row the rest of them, if level 1 keeps them so
// long.
BoxKernel StridedCopy::writing_kernel(const Limits& limits, const CopyKernels& kernels,
                                      Reach reach) const {
  const Axis& i = axes_[1];
  const int64_t rows = std::min(i.size, ceil_div(reach.dst, axes_[0].size));
  const bool kept = rows * line_bytes <= limits.tile &&
                    most_in_a_place(rows, std::abs(i.src), limits.way) <= limits.many_in_a_place;
  return kept ? kernels.transpose_writing : kernels.transpose_lines_writing;
}

// Of a transpose through the caches where its strides or sizes say which order is best.
auto StridedCopy::choose_order(const Limits& limits, const CopyKernels& kernels, int64_t in_a_place)
    -> std::optional<Reach> {
  const Axis &i = axes_[1], &j = axes_[j_];
  const int64_t run = axes_[0].size, step = line_bytes / run;
  const auto choose = [&](BoxKernel kernel, Reach reach) {
    kernel_ = kernel;
    fetches_ = false;
    return reach;
  };
  // Each line belongs to one square, so it is enough that it stays in the level-1 cache for that
  // one. Of narrow matrices this is slower where the level-2 cache has them.
  const bool whole_squares = i.src % line_bytes == 0 && j.dst % line_bytes == 0;
  const bool small = i.size * j.size * run <= limits.small_matrix;
  const int64_t least = (fetches_ ? 1 : 3) * step;
  if (whole_squares && in_a_place <= limits.many_in_a_place &&
      (small || in_a_place >= limits.some_in_a_place) && i.size >= least && j.size >= least) {
    return choose(kernels.transpose_lines_diagonal, limits.diagonal());
  }
  if (in_a_place > limits.some_in_a_place || i.src % limits.way == 0 || j.size < step)
    return std::nullopt;
  if (i.size * run >= long_row)
    return choose(writing_kernel(limits, kernels, limits.long_rows()), limits.long_rows());
  // What the level-2 cache holds need not be read in order, and squares of bytes take 64 rows at a
  // time.
  if (fetches_ && run > 1 && whole_squares && i.size >= step && j.size * run >= long_row) {
    return choose(kernels.transpose_reading, limits.long_source_rows());
  }
  return std::nullopt;
}

// Whether steps along all other axes keep the destination's alignment.
bool StridedCopy::keeps_alignment(int64_t alignment,
                                  std::initializer_list<std::size_t> exempt) const {
  for (std::size_t a = 1; a < axes_.size(); ++a) {
    const bool checked = std::find(exempt.begin(), exempt.end(), a) == exempt.end();
    if (checked && axes_[a].dst % alignment != 0) return false;
  }
  return true;
}

std::vector<std::size_t> StridedCopy::sorted_axes(int64_t Axis::*stride) const {
  std::vector<std::size_t> sorted(axes_.size() - 1);
  std::iota(sorted.begin(), sorted.end(), std::size_t{1});
  std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(std::abs(axes_[a].*stride), a) < std::pair(std::abs(axes_[b].*stride), b);
  });
  return sorted;
}

void StridedCopy::choose_blocks(const Limits& limits, Reach reach) {
  const auto widen = [&](std::size_t a, int64_t target) {
    const int64_t granule = a == i_ || a == j_ ? granule_ : 1;
    axes_[a].block = std::max(axes_[a].block, balanced_block(axes_[a].size, target, granule));
    return axes_[a].block;
  };
  axes_[0].block = balanced_block(axes_[0].size, limits.longest_run, line_bytes);
  int64_t reached = axes_[0].block;
  for (std::size_t a = 1; a < axes_.size() && reached < reach.dst; ++a) {
    reached *= widen(a, ceil_div(reach.dst, reached));
  }
  reached = axes_[0].block;
  for (std::size_t a : sorted_axes(&Axis::src)) {
    if (reached >= reach.src) break;
    if (axes_[a].src != 0) reached *= widen(a, ceil_div(reach.src, reached));
  }
  const bool direct = !staged_ && streaming_ == nullptr;
  const int64_t goal = fetches_ && direct ? limits.fetched_tile : limits.tile;
  int64_t tile = 1;
  for (const Axis& axis : axes_) tile *= axis.block;
  for (std::size_t a = 1; a < axes_.size() && tile < goal; ++a) {
    const int64_t others = tile / axes_[a].block;
    tile = others * widen(a, ceil_div(goal, others));
  }
}

// Lays a tile out on the stage: rows that are contiguous in the destination too, and between them a
// line that keeps them from competing for the same places in the cache.
bool StridedCopy::plan_stage(int64_t largest) {
  int64_t row = axes_[0].block, contiguous = axes_[0].size;
  bool whole = row == contiguous;
  axes_[0].staged = 1;
  std::size_t a = 1;
  for (; a < axes_.size() && whole && (axes_[a].size == 1 || axes_[a].dst == contiguous); ++a) {
    axes_[a].staged = row;
    row *= axes_[a].block;
    contiguous *= axes_[a].size;
    whole = axes_[a].block == axes_[a].size;
  }
  row_axes_ = a;
  int64_t next = ceil_div(row, line_bytes) * line_bytes + line_bytes;
  for (; a < axes_.size(); ++a) {
    axes_[a].staged = next;
    next *= axes_[a].block;
    if (axes_[a].block > 1) rows_.insert(rows_.begin(), a);
  }
  return row >= shortest_staged_row && next <= largest;
}

void StridedCopy::plan_loops(int64_t total_bytes) {
  const Axis &i = axes_[i_], &j = axes_[j_];
  box_ = {1, 1, i.dst, i.src, j.dst, j.src, axes_[0].size, 0, 0};
  const bool reads_in_order = staged_ || streaming_ != nullptr;
  std::vector<std::size_t> order = sorted_axes(reads_in_order ? &Axis::src : &Axis::dst);
  std::reverse(order.begin(), order.end());
  order.push_back(0);
  tiles_ = 1;
  for (std::size_t a : order) {
    tiles_ *= axes_[a].blocks();
    if (axes_[a].blocks() > 1) grid_.push_back(a);
    if (axes_[a].block > 1 && a != 0 && a != i_ && a != j_) inner_.push_back(a);
  }
  // Single bytes take longer to transpose than to read, and are better fetched meanwhile.
  fetches_as_it_writes_ = fetches_ && streams_ && staged_ && axes_[0].size > 1 &&
                          j.src == axes_[0].size && inner_.empty() && rows_ == std::vector{j_};
  parts_ = std::clamp<int64_t>(total_bytes / part_bytes, 1, tiles_);
}

// --- running ---

void StridedCopy::run(std::byte* dst, const std::byte* src, int64_t part) const {
  if (parts_ == 0) return;
  assert(part >= 0 && part < parts_);
  const int64_t each = tiles_ / parts_, more = tiles_ % parts_;
  const int64_t first = part * each + std::min(part, more);
  const int64_t count = each + (part < more ? 1 : 0);

  Position at;
  std::fill_n(at.block, axes_.size(), 0);
  int64_t rest = first;
  for (std::size_t g = grid_.size(); g-- > 0;) {
    at.block[grid_[g]] = rest % axes_[grid_[g]].blocks();
    rest /= axes_[grid_[g]].blocks();
  }
  const bool aligned = reinterpret_cast<std::uintptr_t>(dst) % stream_alignment_ == 0;
  const BoxKernel kernel = streaming_ != nullptr && aligned ? streaming_ : kernel_;
  for (int64_t tile = 0; tile < count; ++tile) {
    std::byte* d = dst;
    const std::byte* s = src;
    for (std::size_t a : grid_) {
      const int64_t start = at.block[a] * axes_[a].block;
      d += start * axes_[a].dst;
      s += start * axes_[a].src;
    }
    if (staged_) {
      run_staged_tile(d, s, at);
    } else {
      run_tile(d, s, at, kernel);
    }
    for (std::size_t g = grid_.size(); g-- > 0;) {
      if (++at.block[grid_[g]] < axes_[grid_[g]].blocks()) break;
      at.block[grid_[g]] = 0;
    }
  }
  if (streams_) level().copies.finish_streaming();
}

int64_t StridedCopy::extent(std::size_t a, const Position& at) const {
  return std::min(axes_[a].block, axes_[a].size - at.block[a] * axes_[a].block);
}

// From a tile to the next, in bytes.
int64_t StridedCopy::distance_to_next(const Position& at, int64_t Axis::*stride) const {
  int64_t distance = 0;
  for (std::size_t g = grid_.size(); g-- > 0;) {
    const Axis& axis = axes_[grid_[g]];
    if (at.block[grid_[g]] + 1 < axis.blocks()) return distance + axis.block * axis.*stride;
    distance -= at.block[grid_[g]] * axis.block * axis.*stride;
  }
  return distance;
}

void StridedCopy::run_tile(std::byte* dst, const std::byte* src, const Position& at,
                           BoxKernel kernel) const {
  CopyBox box = box_;
  box.run = extent(0, at);
  box.count_i = extent(i_, at);
  box.count_j = extent(j_, at);
  if (fetches_) {
    box.src_ahead = distance_to_next(at, &Axis::src);
    box.dst_ahead = distance_to_next(at, &Axis::dst);
  }
  run_loops(dst, src, box, kernel, {inner_, &Axis::dst, &Axis::src}, at);
}

void StridedCopy::run_staged_tile(std::byte* dst, const std::byte* src, const Position& at) const {
  alignas(line_bytes) std::byte stage[largest_stage];
  CopyBox box = box_;
  box.run = extent(0, at);
  box.count_i = extent(i_, at);
  box.count_j = extent(j_, at);
  if (fetches_ && !fetches_as_it_writes_) box.src_ahead = distance_to_next(at, &Axis::src);
  box.dst_i = axes_[i_].staged;
  box.dst_j = axes_[j_].staged;
  CopyBox row{1, 1, 0, 0, 0, 0, 1, 0, 0};
  for (std::size_t a = 0; a < row_axes_; ++a) row.run *= extent(a, at);
  const Loops rows{rows_, &Axis::dst, &Axis::staged};
  // By the time that the rows are written, the lines that they share with others are there.
  if (streams_) run_loops(dst, dst, row, level().copies.fetch_row_ends, rows, at);
  run_loops(stage, src, box, kernel_, {inner_, &Axis::staged, &Axis::src}, at);
  if (fetches_as_it_writes_) return write_and_fetch(dst, stage, row, src, at);
  run_loops(dst, stage, row, level().copies.rows(streams_), rows, at);
}

// Reading and writing memory at the same time. Between two rows of this tile, it fetches some of
// the next.
void StridedCopy::write_and_fetch(std::byte* dst, const std::byte* stage, const CopyBox& row,
                                  const std::byte* src, const Position& at) const {
  const Axis &i = axes_[i_], &j = axes_[j_];
  const BoxKernel write = level().copies.rows(true);
  const int64_t ahead = distance_to_next(at, &Axis::src), rows = extent(j_, at),
                src_rows = extent(i_, at);
  int64_t fetched = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t goal = (r + 1) * src_rows / rows;
    level().copies.fetch_rows(src + fetched * i.src, ahead, goal - fetched, i.src, rows * j.src);
    fetched = goal;
    write(dst + r * j.dst, stage + r * j.staged, row);
  }
}

void StridedCopy::run_loops(std::byte* dst, const std::byte* src, const CopyBox& box,
                            BoxKernel kernel, const Loops& loops, const Position& at) const {
  const std::size_t depth = loops.axes.size();
  if (depth == 0) return kernel(dst, src, box);
  struct Loop {
    int64_t count, dst, src, index;
  };
  Loop stack[max_axes];
  for (std::size_t n = 0; n < depth; ++n) {
    const Axis& axis = axes_[loops.axes[n]];
    stack[n] = {extent(loops.axes[n], at), axis.*loops.dst, axis.*loops.src, 0};
  }
  const Loop& fastest = stack[depth - 1];
  for (;;) {
    for (int64_t n = 0; n < fastest.count; ++n) {
      kernel(dst + n * fastest.dst, src + n * fastest.src, box);
    }
    for (std::size_t n = depth - 1;;) {
      if (n == 0) return;
      Loop& loop = stack[--n];
      dst += loop.dst;
      src += loop.src;
      if (++loop.index < loop.count) break;
      dst -= loop.count * loop.dst;
      src -= loop.count * loop.src;
      loop.index = 0;
    }
  }
}

}  // namespace ein::host
