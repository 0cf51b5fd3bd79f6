// Schedule: in which order nests compute and where their values live, before any code is written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nest/nest.hpp"
#include "size/size_arithmetic.hpp"
#include "size/size_scope.hpp"

namespace ein {

/// Steps that run one after the other. A step is loops whose points are done in parallel, in units;
/// a unit does the step's parts in order, some of them again and again in serial loops of its own.
/// A part is several nests over the same rows, a product of matrices, or a nest that an engine of
/// its own does.
///
/// Units depend on nothing but the sizes, so that the order of additions, and with it each bit of a
/// result, is the same for any number of threads.
struct Schedule {
  /// Memory beside the program's buffers.
  struct Scratch {
    Size elements = 0;
    DType dtype = DType::f32;
    bool of_thread = false;  // each thread has its own, and a unit finds nothing in it; else all
                             // share it for the whole run
    EIN_FIELDS(Scratch, elements, dtype, of_thread)
  };
  /// A loop in pieces of `block` points, the last one maybe of fewer. A unit has one piece of each
  /// parallel loop. Behind these are the serial loops, whose pieces a unit does one after the
  /// other.
  struct Loop {
    std::string axis;
    Size size = 1, block = 1;
    bool is_serial = false;
    Size pieces() const { return ceil_div(size, block); }
    Size first(Size piece) const { return piece * block; }
    Size count(Size piece) const { return std::min(block, size - first(piece)); }
    EIN_FIELDS(Loop, axis, size, block, is_serial)
  };
  /// How many: a number, or one for each point that a piece has of one of the step's loops, or
  /// several; then `size` is that of a whole piece.
  struct Extent {
    Size size = 1;
    int loop = -1;
    EIN_FIELDS(Extent, size, loop)
  };
  /// Where a part's operand lies, in elements. Operands of a part that touch the same memory are
  /// the same place.
  struct Place {
    int buffer = 0;  // of the program; scratch s is number `buffers` + s
    DType dtype = DType::f32;
    Size offset = 0;
    std::vector<Size> strides{};  // of each loop of the step, from piece to piece
    Size row_step = 0;            // from row to row
    Size step = 0;                // from element to element of a row
    bool is_kept =
        true;  // whether what is written is read later by others; else it may stay in registers
    bool streams = false;  // written past the caches: all vectors of its rows lie on 64-byte lines
    EIN_FIELDS(Place, buffer, dtype, offset, strides, row_step, step, is_kept, streams)
    friend bool operator==(const Place& a, const Place& b);
  };
  /// What a combination runs over.
  enum class Over : std::uint8_t {
    row,   ///< the elements of a row: one value, stored where the output's row begins
    rows,  ///< the rows: a row of values. The output has row_step 0
  };
  /// A nest over rows. Those of a part may read at a place what others wrote there before, in the
  /// same row.
  struct RowNest {
    std::vector<std::size_t> inputs{};  // places
    std::size_t output = 0;
    ScalarExpr body{};
    std::optional<Combine> combine{};
    Over over = Over::row;
    ScalarExpr epilogue{};   // as in LoopNest; of combined rows in strips alone
    bool is_scalar = false;  // one value for each row, from one value of each input
    EIN_FIELDS(RowNest, inputs, output, body, combine, over, epilogue, is_scalar)
  };
  /// Nests over the same rows: row after row, in each row nest after nest, all elements side by
  /// side. Code is made for them, in f32 or f64 in registers, or they are evaluated in strips: step
  /// after step on about a thousand elements.
  struct Rows {
    Extent rows, length;
    std::vector<RowNest> nests;
    bool in_strips = false;
    DType compute = DType::f32;  // as in LoopNest
    /// Of the axes that expressions ask the index of: the loop that moves them from unit to unit,
    /// or -1; and whether they also move from row to row or along a row.
    struct Axis {
      int loop = -1;
      bool is_row = false, is_along = false;
      EIN_FIELDS(Axis, loop, is_row, is_along)
    };
    std::vector<Axis> axes{};
    EIN_FIELDS(Rows, rows, length, nests, in_strips, compute, axes)
  };
  /// c = a · b, or c += a · b, of f32 matrices a (rows, depth), b (depth, columns) and c: places 0,
  /// 1 and 2, with row_step from row to row and step from column to column.
  struct Product {
    Extent rows, columns, depth;
    bool adds = false;
    EIN_FIELDS(Product, rows, columns, depth, adds)
  };
  /// Which pieces of a mask's loops.
  enum class Pieces : std::uint8_t {
    all,
    cut,    ///< of which some points are hidden
    whole,  ///< of which none is
  };
  struct Part {
    std::vector<Place> places;
    Rows rows{};  // if `product` and `whole` are none
    std::optional<Product> product{};
    std::optional<LoopNest> whole{};  // operand o lies at place o, from there as its strides say;
                                      // its buffer and offset are not read
    std::vector<int> loops{};  // of each axis of `whole`: the loop whose pieces its size follows,
                               // as an extent's does, or -1; none where no axis does
    std::size_t inside = 0;    // how many of the step's serial loops are around it, from the first
    Pieces pieces = Pieces::all;  // for which it is done
    EIN_FIELDS(Part, places, rows, product, whole, loops, inside, pieces)
  };
  /// Points of two loops are hidden where key > query + reach or key < query - back. Pieces with
  /// nothing but hidden points are left out.
  struct Mask {
    std::size_t query, key;
    std::optional<Size> reach{}, back{};
    EIN_FIELDS(Mask, query, key, reach, back)
  };
  /// How the threads of a GPU share a step's units. Those of a unit, its lanes, walk each of its
  /// nests in the same way: what one makes at a point the same thread has there.
  struct Threads {
    std::int64_t threads = 128;  // of a block
    std::int64_t lanes = 1;      // of a unit: a block has threads / lanes units
    bool by_rows = true;       // neighbours are lanes of a unit; else they have neighbouring units
    std::int64_t width = 1;    // elements along the last axis that a lane reads at once
    bool is_unrolled = false;  // a lane has few elements, whose values may stay in registers
    std::int64_t run = 32;     // values that a lane adds before their sum is added to its total
    EIN_FIELDS(Threads, threads, lanes, by_rows, width, is_unrolled, run)
  };
  struct Step {
    std::vector<Loop> loops;
    std::vector<Part> parts;
    std::optional<Mask> mask{};
    std::optional<Threads> threads{};
    Size units() const {
      Size units = 1;
      for (const Loop& loop : loops) units *= loop.is_serial ? Size(1) : loop.pieces();
      return units;
    }
    EIN_FIELDS(Step, loops, parts, mask, threads)
  };

  std::size_t buffers = 0;  // of the program
  std::vector<Scratch> scratch;
  std::vector<Step> steps;

  bool is_scratch(const Place& place) const {
    return static_cast<std::size_t>(place.buffer) >= buffers;
  }
  const Scratch& scratch_of(const Place& place) const {
    return scratch[static_cast<std::size_t>(place.buffer) - buffers];
  }
  EIN_FIELDS(Schedule, buffers, scratch, steps)
};

/// Sets `pieces`, one for each loop, to those of a unit; serial loops are at their first.
template <class Loops, class Pieces>
void begin_unit(const Loops& loops, std::int64_t unit, Pieces& pieces) {
  for (std::size_t l = loops.size(); l-- > 0;) {
    const std::int64_t count =
        loops[l].is_serial ? 1 : static_cast<std::int64_t>(loops[l].pieces());
    pieces[l] = count == 1 ? 0 : unit % count;
    if (count != 1) unit /= count;
  }
}

/// What a unit does of a step's parts [first, end), around which there are at least as many serial
/// loops as the last argument says: calls run(part) in order, with `pieces` set for each.
template <class Step, class Pieces, class F>
void run_parts(const Step& step, Pieces& pieces, const F& run, std::size_t first, std::size_t end,
               std::size_t inside = 0) {
  const auto first_point = [&](std::size_t l) { return step.loops[l].first(pieces[l]); };
  const auto last_point = [&](std::size_t l) {
    return first_point(l) + step.loops[l].count(pieces[l]) - 1;
  };
  // Whether the mask hides a key of a query.
  const auto hides = [&](auto key_after, auto query_before, auto key_before, auto query_after) {
    const auto& [query, key, reach, back] = *step.mask;
    return (reach && key_after(key) > query_before(query) + *reach) ||
           (back && key_before(key) < query_after(query) - *back);
  };
  const auto is_hidden = [&] { return hides(first_point, last_point, last_point, first_point); };
  const auto is_cut = [&] { return hides(last_point, first_point, first_point, last_point); };
  for (std::size_t p = first; p < end;) {
    const auto& part = step.parts[p];
    if (part.inside == inside) {
      using Of = Schedule::Pieces;
      if (part.pieces == Of::all || is_cut() == (part.pieces == Of::cut)) run(part);
      ++p;
      continue;
    }
    std::size_t loop = 0, behind = p;
    while (!step.loops[loop].is_serial) ++loop;
    loop += inside;
    while (behind < end && step.parts[behind].inside > inside) ++behind;
    for (pieces[loop] = 0; pieces[loop] < step.loops[loop].pieces(); ++pieces[loop]) {
      if (step.mask && loop == std::max(step.mask->query, step.mask->key) && is_hidden()) continue;
      run_parts(step, pieces, run, p, behind, inside + 1);
    }
    pieces[loop] = 0;
    p = behind;
  }
}

std::string to_string(const Schedule& schedule);

/// Throws std::logic_error for a schedule that is none: numbers of places, loops and steps that do
/// not fit each other, accesses outside of a buffer, scratch that is read before it is written or
/// by other units of its step, units that write the same element. `elements` of the program's
/// buffers; empty where they are not known.
void verify(const Schedule& schedule, std::span<const Size> elements = {});

}  // namespace ein
