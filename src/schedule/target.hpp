// Target: what schedules may ask of the processor that they are made for.
#pragma once

#include <cstdint>

#include "nest/combine.hpp"

namespace ein {

/// A target without functions has no code for rows: maps and reductions are then evaluated in
/// strips. Sizes are in elements.
struct Target {
  constexpr Target() { fit(1 << 20); }

  /// Code for rows that computes in f32 or f64: the functions of an element and the combinations it
  /// has, whether it reads elements `step` apart along a row (or one value that holds for the row:
  /// step 0), and what it writes side by side.
  bool (*has)(ScalarOp, DType compute) = nullptr;
  bool (*combines)(Combine) = nullptr;
  bool (*reads)(DType, Size step, DType compute) = nullptr;
  bool (*writes)(DType, DType compute) = nullptr;
  /// Whether rows shorter than a register are combined several together, into results side by side.
  bool (*combines_together)(Combine) = nullptr;
  bool has_rows() const { return has != nullptr; }

  std::int64_t register_bytes = 64;
  std::int64_t lanes(DType compute) const {
    return register_bytes / static_cast<std::int64_t>(size_of(compute));
  }
  std::int64_t strip = 1024;  // elements that are evaluated together, where there is no code
  std::int64_t line_bytes = 64;

  /// Fewer points are done before code is compiled for them.
  std::int64_t least_points = 2048;
  /// A reduction in strips that would have fewer units than `few_units` is cut into at most
  /// `most_pieces`.
  std::int64_t few_units = 16, most_pieces = 64;
  /// A reduction with fewer rows than this is cut into pieces of each row, so that several threads
  /// share it.
  std::int64_t least_rows = 8;
  /// Longer rows are not combined in one go: sums would lose too much.
  std::int64_t longest_combined_row = 65536;
  /// Rows of a unit where rows are combined: runs are summed, and then as many of these sums.
  std::int64_t least_rows_in_unit = run_length, most_rows_in_unit = run_length * run_length;
  /// The longest rows, in registers, whose combined values stay in registers. Rows of at most four
  /// are folded into rows of this length. Twice as long, results and runs would not fit.
  std::int64_t folded_registers = 8;
  /// Elements that are used less often, in a reduction of pairs, are not laid anew for it.
  std::int64_t least_uses = 16;
  /// Tiles of results that stay in registers while rows are combined into them: so many registers
  /// of a row. Fewer uses of what tiles share, or fewer points that are combined, would not pay for
  /// its being laid anew; sums of more points would lose too much.
  std::int64_t tile_registers = 2, least_tile_uses = 16, least_tile_depth = 8,
               most_tile_depth = 16384;
  /// The most points of a window, whose values are loaded one by one, and inputs of all of them.
  std::int64_t most_window_points = 16, most_window_inputs = 32;
  /// Shorter axes are not worth turning.
  std::int64_t least_turned_size = 16;
  std::int64_t most_blocks = 1024;
  /// Shorter pieces of memory, one here and one there, come slowly.
  std::int64_t least_run = 256;
  /// How much of a reduced axis a block may have: with less, what the blocks give is as much as
  /// what they read; of more a plain sum would lose precision.
  std::int64_t least_in_half = 8, most_in_half = 128;

  // Sizes that follow from the second-level cache: see `fit`.

  /// Of a unit, about: fewer cost more in calls than they share out.
  std::int64_t elements_per_unit;
  /// Results at a time where rows are combined: they stay near, and a row is read in long pieces.
  std::int64_t most_columns;
  /// An operand with fewer elements stays in the cache however it is walked.
  std::int64_t least_turned_elements;
  /// Blocks of fewer elements cost more in calls than they save in memory traffic, those of more
  /// leave the cache.
  std::int64_t elements_per_block, most_elements_per_block;
  /// Attention: of a tile of scores.
  std::int64_t queries_in_tile, keys_in_tile;
  /// Where all scores of a head have fewer bytes, they stay in the cache, and gradients need not
  /// compute them again.
  std::int64_t least_score_bytes;

  /// Sets them for a second-level cache of `bytes`. Elements are taken to have 4 bytes. The shares
  /// are those that were fastest with 1 MiB, on Zen 4 and Zen 5 (bench/peers).
  constexpr void fit(std::int64_t bytes) {
    elements_per_unit = least_turned_elements = bytes / 32;  // an eighth of the cache
    most_columns = bytes / 64;
    elements_per_block = bytes / 128;  // a 32nd to a half
    most_elements_per_block = bytes / 8;
    // Two tiles, their rows and columns of the operands, and the sums have room.
    queries_in_tile = keys_in_tile = 32;
    while (64 * 4 * queries_in_tile * queries_in_tile <= bytes) {
      queries_in_tile *= 2;
      keys_in_tile *= 2;
    }
    least_score_bytes = bytes / 4;
  }

  /// Of fewer heads, gradients of queries and of keys are computed apart, each in many units.
  std::int64_t least_heads = 16;
};

/// A GPU of NVIDIA. A unit is a row; a thread block has several short ones or one long one.
struct GpuTarget {
  int sm = 90;              ///< the compute capability times 10
  bool accelerated = true;  ///< whether instructions of that very architecture (sm_90a) may be used
  int sms = 132;            ///< multiprocessors, which launches are to keep busy
  /// Whether contractions of f32 may round their operands to tf32, of 10 bits behind the point.
  bool tf32 = false;

  // The order of additions follows from these and from shapes: they are the same for all devices.

  /// Threads and blocks that keep a device of about a hundred multiprocessors busy.
  std::int64_t busy_threads = 132 * 256, busy_blocks = 264;
  /// The same where each thread reads one element at a time, as of columns: only many threads keep
  /// the memory busy.
  std::int64_t busy_blocks_of_columns = 528;
  std::int64_t threads = 256, most_threads = 1024;  // of a block
  std::int64_t warp = 32;
  /// Values that a thread adds to a partial sum before it adds that to its total: the error of a
  /// sum then grows with the logarithm of its length.
  std::int64_t run_length = 32;
  /// Elements of a lane whose loop is unrolled, so that values can stay in registers; fewer in
  /// large blocks, and where nothing stays.
  std::int64_t most_unrolled = 64, most_unrolled_of_large = 16, most_unrolled_alone = 16;

  /// Reductions of pairs in tiles: with fewer rows or columns of results, fewer points combined, or
  /// fewer tiles of 16 × 16 results in all, single results are as well computed by themselves.
  std::int64_t least_tile_side = 16, least_tile_depth = 8, least_tiles = 64;

  /// Few long rows would leave most of a device idle, while single nests cut them into pieces:
  /// fewer rows than these, of more elements, are no group.
  std::int64_t few_rows = 32, row_of_few = 8192, some_rows = 128, row_of_some = 32768;
  /// Rows that lie across memory, such as columns of a matrix, have few threads each: fewer of
  /// them, of more elements, are no group.
  std::int64_t many_columns = 4096, short_column = 64;
};

}  // namespace ein
