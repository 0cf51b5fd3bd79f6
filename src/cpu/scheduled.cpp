#include "cpu/scheduled.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "cpu/gemm.hpp"
#include "cpu/row_code.hpp"
#include "cpu/strip.hpp"
#include "cpu/strip_rows.hpp"
#include "graph/after_pass.hpp"
#include "graph/at_sizes.hpp"
#include "machine/cache.hpp"
#include "machine/parallel.hpp"
#include "nest/combine.hpp"
#include "size/ask.hpp"
#include "tensor/heap_bytes.hpp"
#include "tensor/small_array.hpp"

namespace ein::host {
namespace {

using Place = Schedule::Place;
using Part = Schedule::Part;
using Addresses = SmallArray<std::byte*, most_places>;

/// How many rows of a run are added up at a time.
constexpr std::int64_t rows_at_once = 4;

std::int64_t bytes(const Place& place) { return static_cast<std::int64_t>(size_of(place.dtype)); }

/// Whether what nest n writes could pass by the caches.
bool could_stream(const Part& part, std::size_t n) {
  const Schedule::RowNest& nest = part.rows.nests[n];
  const Place& place = part.places[nest.output];
  if (nest.combine || nest.is_scalar || place.dtype != part.rows.compute || !is_one(place.step) ||
      !place.is_kept)
    return false;
  if (!ask_equal(place.row_step * bytes(place) % line_bytes, 0)) return false;
  // Of what was there before nothing may be needed.
  const auto& nests = part.rows.nests;
  return std::none_of(nests.begin(), nests.end(), [&](const Schedule::RowNest& other) {
    const bool reads =
        std::find(other.inputs.begin(), other.inputs.end(), nest.output) != other.inputs.end();
    return (reads && &other <= &nest) || (&other != &nest && other.output == nest.output);
  });
}

/// Lets nest n write past the caches; those behind it that read the row again find it in a row's
/// memory beside.
void stream(Part& part, std::size_t n) {
  auto& nests = part.rows.nests;
  const std::size_t p = nests[n].output;
  part.places[p].streams = true;
  const auto reads = [&](const Schedule::RowNest& nest) {
    return std::find(nest.inputs.begin(), nest.inputs.end(), p) != nest.inputs.end();
  };
  if (std::none_of(nests.begin(), nests.end(), reads)) return;
  const std::size_t beside = part.places.size();
  part.places.push_back({.dtype = part.rows.compute, .step = 1, .is_kept = false});
  for (Schedule::RowNest& nest : nests)
    std::replace(nest.inputs.begin(), nest.inputs.end(), p, beside);
  nests[n].output = beside;
  nests.insert(nests.begin() + static_cast<std::ptrdiff_t>(n) + 1,
               {.inputs = {beside}, .output = p, .body = Ex::input(0)});
}

/// The part with nests that combine rows as maps of a row and the results so far, which lie where
/// they write.
Part with_maps(Part part) {
  for (Schedule::RowNest& nest : part.rows.nests) {
    if (!nest.combine || nest.over != Schedule::Over::rows) continue;
    nest.body = combined(*nest.combine, nest.body, nest.inputs.size());
    nest.inputs.push_back(nest.output);
    nest.combine.reset();
  }
  return part;
}

/// A part of one nest that combines rows, with several rows as one. Row r's input i is place r ·
/// inputs + i.
Part several_at_once(const Part& part, std::int64_t rows) {
  const Schedule::RowNest& one = part.rows.nests[0];
  Part several;
  several.rows = part.rows;
  Schedule::RowNest nest{.combine = one.combine, .over = one.over};
  std::vector<Ex> values;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<ScalarExpr> of_row;
    for (std::size_t p : one.inputs) {
      nest.inputs.push_back(several.places.size());
      of_row.push_back(Ex::input(static_cast<int>(several.places.size())));
      several.places.push_back(part.places[p]);
      several.places.back().row_step *= rows;
    }
    values.push_back(Ex::of(substitute(one.body, of_row)));
  }
  while (values.size() > 1) {
    const std::size_t half = values.size() / 2;
    for (std::size_t v = 0; v < half; ++v)
      values[v] = Ex::apply(info(*one.combine).operation, values[2 * v], values[2 * v + 1]);
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(half), values.end());
  }
  nest.output = several.places.size();
  several.places.push_back(part.places[one.output]);
  nest.body = values[0];
  several.rows.nests = {std::move(nest)};
  return several;
}

/// What row code wants to know of the lengths.
struct RowNumbers {
  std::vector<std::int64_t> row_steps;  // of each place, in bytes
  std::vector<double> sizes;

  RowNumbers(const Part& part, SizesAt& sizes_at) {
    for (const Place& place : part.places)
      row_steps.push_back(sizes_at(place.row_step) * bytes(place));
    for (const Size size : RowCode::sizes_of(part))
      sizes.push_back(static_cast<double>(sizes_at(size)));
  }
  std::size_t heap_bytes() const { return heap_bytes_of_all(row_steps, sizes); }
};

/// The code of a part's rows, for all lengths.
class RowsCode {
 public:
  /// Of a part of a step; is_ready() says whether there is code.
  RowsCode(const Schedule::Step& step, const Part& part)
      : part_(RowCode::combines_rows(part) ? part : with_maps(part)), streaming_(part_) {
    code_ = RowCode::compile(part_);
    if (RowCode::combines_rows(part)) return;
    for (const Schedule::RowNest& nest : part.rows.nests) {
      if (nest.combine && nest.over == Schedule::Over::rows)
        combines_.push_back({nest.output, identity<double>(*nest.combine)});
    }
    if (part.rows.nests.size() == 1 && combines_.size() == 1) make_code_of_runs(part);
    // Where all that is read and written is more than the cache holds, results leave it before they
    // are read again, and each line of them would first be read.
    if (code_ && !is_in_runs_ && bytes_of(step, part) >= caches().l3) make_streaming_code();
  }

  bool is_ready() const { return code_ && (!is_in_runs_ || add_); }
  std::size_t places() const { return streaming_.places.size(); }

  /// Of some lengths.
  struct Numbers {
    RowNumbers of_rows, of_streaming;
    std::optional<RowNumbers> of_several;
    std::size_t length;  // of a row

    std::size_t heap_bytes() const {
      return of_rows.heap_bytes() + of_streaming.heap_bytes() +
             (of_several ? of_several->heap_bytes() : 0);
    }
  };
  /// Without the code, which counts its own.
  std::size_t own_bytes() const {
    return sizeof *this + heap_bytes_of_all(part_, streaming_, several_part_, combines_);
  }
  Numbers at(SizesAt& sizes) const {
    Numbers numbers{{part_, sizes},
                    {streaming_, sizes},
                    {},
                    static_cast<std::size_t>(sizes(part_.rows.length.size))};
    if (several_) numbers.of_several.emplace(several_part_, sizes);
    return numbers;
  }

  /// `places`, of which those behind the part's are still free.
  void run(const Numbers& numbers, Addresses& places, std::int64_t rows, std::int64_t length,
           std::int64_t* index) const {
    part_.rows.compute == DType::f64 ? run_in<double>(numbers, places, rows, length, index)
                                     : run_in<float>(numbers, places, rows, length, index);
  }

 private:
  template <class C>
  void run_in(const Numbers& numbers, Addresses& places, std::int64_t rows, std::int64_t length,
              std::int64_t* index) const {
    if (is_in_runs_) return run_in_runs<C>(numbers, places, rows, length, index);
    for (const auto& [p, number] : combines_)
      std::fill_n(reinterpret_cast<C*>(places[p]), length, static_cast<C>(number));
    const bool streams = streaming_code_ && are_aligned(places);
    if (streams) {
      const std::size_t row = numbers.length, first = part_.places.size();
      C* beside = strip_scratch<C>(row * (places.size() - first));
      for (std::size_t p = first; p < places.size(); ++p, beside += row)
        places[p] = reinterpret_cast<std::byte*>(beside);
    }
    const RowNumbers& of = streams ? numbers.of_streaming : numbers.of_rows;
    (streams ? *streaming_code_
             : *code_)({places.data(), length, rows, index, of.row_steps.data(), of.sizes.data()});
  }

  /// Bytes that a step reads and writes at a part's places.
  static Size bytes_of(const Schedule::Step& step, const Part& part) {
    Size all = 0;
    for (const Place& place : part.places) {
      if (!place.is_kept || always_equal(place.step, 0)) continue;
      Size elements = part.rows.length.loop < 0 ? part.rows.length.size : Size(1);
      if (!always_equal(place.row_step, 0) && part.rows.rows.loop < 0)
        elements *= part.rows.rows.size;
      for (std::size_t l = 0; l < step.loops.size(); ++l) {
        if (!always_equal(place.strides[l], 0)) elements *= step.loops[l].size;
      }
      all += elements * bytes(place);
    }
    return all;
  }

  void make_streaming_code() {
    for (std::size_t n = 0; n < streaming_.rows.nests.size(); ++n) {
      if (could_stream(streaming_, n)) stream(streaming_, n);
    }
    const bool streams = std::any_of(streaming_.places.begin(), streaming_.places.end(),
                                     [](const Place& place) { return place.streams; });
    if (streams && streaming_.places.size() <= most_places)
      streaming_code_ = RowCode::compile(streaming_);
    if (!streaming_code_) streaming_ = part_;
  }

  bool are_aligned(Addresses& places) const {
    for (std::size_t p = 0; p < part_.places.size(); ++p) {
      if (streaming_.places[p].streams &&
          reinterpret_cast<std::uintptr_t>(places[p]) % line_bytes != 0)
        return false;
    }
    return true;
  }

  void make_code_of_runs(const Part& part) {
    is_in_runs_ = part.rows.length.size <= static_cast<std::int64_t>(longest_run);
    if (!is_in_runs_) return;
    const Schedule::RowNest& nest = part.rows.nests[0];
    const auto asks_row = [&](const ScalarStep& step) {
      return step.op == ScalarOp::index &&
             part.rows.axes[static_cast<std::size_t>(step.which)].is_row;
    };
    if (std::none_of(nest.body.steps.begin(), nest.body.steps.end(), asks_row)) {
      several_part_ = with_maps(several_at_once(part, rows_at_once));
      several_ = RowCode::compile(several_part_);
    }
    const Place row{.dtype = part.rows.compute, .step = 1};
    Part add{.places = {row, row}};
    add.rows.length = part.rows.length;
    add.rows.compute = part.rows.compute;
    add.rows.nests = {
        {.inputs = {0, 1}, .output = 1, .body = combined(*nest.combine, Ex::input(0), 1)}};
    add_ = RowCode::compile(add);
  }

  template <class C>
  void run_in_runs(const Numbers& numbers, Addresses& places, std::int64_t rows,
                   std::int64_t length, std::int64_t* index) const {
    const auto [output, number] = combines_[0];
    auto* const result = reinterpret_cast<C*>(places[output]);
    C one_run[longest_run];
    for (std::int64_t row = 0; row < rows; row += run_length) {
      C* const into = row == 0 ? result : one_run;
      std::fill_n(into, length, static_cast<C>(number));
      const std::int64_t count = std::min(run_length, rows - row),
                         together = several_ ? count / rows_at_once * rows_at_once : 0;
      if (together > 0)
        run_rows(*several_, rows_at_once, numbers, places, row, together, length,
                 reinterpret_cast<std::byte*>(into), index);
      if (together < count)
        run_rows(*code_, 1, numbers, places, row + together, count - together, length,
                 reinterpret_cast<std::byte*>(into), index);
      if (into == result) continue;
      std::byte* ends[] = {reinterpret_cast<std::byte*>(into),
                           reinterpret_cast<std::byte*>(result)};
      (*add_)({ends, length, 1, nullptr});
    }
  }

  /// By code that takes `at_once` of them; the only nest's inputs are all places but its output.
  void run_rows(const RowCode& code, std::int64_t at_once, const Numbers& numbers,
                Addresses& places, std::int64_t row, std::int64_t rows, std::int64_t length,
                std::byte* into, std::int64_t* index) const {
    const Schedule::RowNest& nest = part_.rows.nests[0];
    const std::size_t inputs = nest.inputs.size() - 1;  // the last is the result so far
    Addresses of_rows(static_cast<std::size_t>(at_once) * inputs + 1);
    for (std::int64_t r = 0; r < at_once; ++r) {
      for (std::size_t i = 0; i < inputs; ++i) {
        const std::size_t p = nest.inputs[i];
        of_rows[static_cast<std::size_t>(r) * inputs + i] =
            places[p] + (row + r) * numbers.of_rows.row_steps[p];
      }
    }
    of_rows[of_rows.size() - 1] = into;
    for (std::size_t a = 0; a < part_.rows.axes.size(); ++a)
      index[a] += part_.rows.axes[a].is_row ? row : 0;
    const RowNumbers& of = at_once > 1 ? *numbers.of_several : numbers.of_rows;
    code({of_rows.data(), length, rows / at_once, index, of.row_steps.data(), of.sizes.data()});
    for (std::size_t a = 0; a < part_.rows.axes.size(); ++a)
      index[a] -= part_.rows.axes[a].is_row ? row : 0;
  }

  static constexpr std::size_t longest_run = 16384;  // elements of a row that is combined in runs

  Part part_, streaming_, several_part_;  // with maps
  std::shared_ptr<const RowCode> code_, streaming_code_;
  std::vector<std::pair<std::size_t, double>>
      combines_;  // places of rows that combine others, and what they begin as
  bool is_in_runs_ = false;
  std::shared_ptr<const RowCode> several_, add_;  // add_: a run to the result so far
};

/// About what StripRows keep of a part: its nest, and constants and slots of its steps.
std::size_t bytes_in_strips(const Part& part) { return sizeof(Part) + 2 * heap_bytes(part); }

/// A schedule, and what of its parts suits all lengths.
struct Planned {
  struct Rows {
    std::unique_ptr<const RowsCode> code;
    std::unique_ptr<const StripRows> strips;  // of expressions without formulas
  };
  Schedule schedule;
  std::vector<std::vector<Rows>> rows;  // of each part of each step
  KeptBytes kept{};
};

class ScheduledKernel final : public Kernel {
 public:
  ScheduledKernel(std::shared_ptr<const Planned> planned, SizesAt& sizes)
      : planned_(std::move(planned)), buffers_(planned_->schedule.buffers) {
    for (const Schedule::Scratch& scratch : planned_->schedule.scratch) {
      std::size_t& all = scratch.of_thread ? thread_scratch_ : shared_;
      scratch_.push_back({all, scratch.of_thread});
      all +=
          aligned_bytes(static_cast<std::size_t>(sizes(scratch.elements)) * size_of(scratch.dtype));
    }
    for (std::size_t s = 0; s < planned_->schedule.steps.size(); ++s)
      steps_.push_back(step_of(planned_->schedule.steps[s], planned_->rows[s], sizes));
    kept.add(own_bytes());
  }

  std::size_t workspace_bytes(int threads) const override {
    std::size_t most = 0;
    for (const Step& step : steps_) most = std::max(most, step_bytes(step, threads));
    return shared_ + most;
  }

  void run(const Run& run) const override {
    for (const Step& step : steps_) {
      if (step.units == 1) {
        run_unit(step, run, 0, run.workspace + shared_, run.threads);
      } else if (step.thread_bytes == 0) {
        parallel_for(step.units, [&](std::int64_t unit) { run_unit(step, run, unit, nullptr, 1); });
      } else {
        run_with_memory(step, run);
      }
    }
  }

 private:
  using Pieces = SmallArray<std::int64_t, 16>;  // where a unit is in each loop
  struct PlaceOf {
    std::size_t buffer;  // from buffers_ on of scratch
    std::int64_t offset;
    std::vector<std::int64_t> strides;  // both in bytes
    std::int64_t row_step, step;        // in elements
  };
  /// As in a schedule, in numbers.
  struct Loop {
    std::int64_t size, block;
    bool is_serial;
    std::int64_t pieces() const { return ceil_div(size, block); }
    std::int64_t first(std::int64_t piece) const { return piece * block; }
    std::int64_t count(std::int64_t piece) const { return std::min(block, size - first(piece)); }
  };
  struct Extent {
    std::int64_t of_point = 1;  // how many for each point of a loop's piece; without one, all
    int loop = -1;
  };
  struct PartOf {
    const Part* part;
    std::vector<PlaceOf> places{};
    Extent rows{}, length{}, depth{};  // of rows or a product, whose columns are its length
    const RowsCode* code = nullptr;
    std::optional<RowsCode::Numbers> numbers{};  // of the code
    const StripRows* strips = nullptr;
    std::optional<StripRows::Steps> steps{};  // of the strips
    std::unique_ptr<const StripRows> own_strips{};
    std::unique_ptr<Kernel> whole{},
        rest{};       // of a whole piece, and of a last one with fewer points
    int cut_by = -1;  // the loop that has such a one
    std::size_t inside;
    Schedule::Pieces pieces;
    bool asks_index = false;
  };
  struct Mask {
    std::size_t query, key;
    std::optional<std::int64_t> reach, back;
  };
  struct Step {
    std::vector<Loop> loops;
    std::vector<PartOf> parts;
    std::optional<Mask> mask;
    std::int64_t units = 1;
    std::size_t thread_bytes = 0;  // that each thread needs, if there are several units
  };
  struct ScratchOf {
    std::size_t at;
    bool of_thread;
  };

  Step step_of(const Schedule::Step& step, std::span<const Planned::Rows> rows,
               SizesAt& sizes) const {
    Step result;
    for (const Schedule::Loop& loop : step.loops) {
      result.loops.push_back({sizes(loop.size), sizes(loop.block), loop.is_serial});
      if (!loop.is_serial) result.units *= result.loops.back().pieces();
    }
    const auto limit = [&](const std::optional<Size>& size) {
      return size ? std::optional<std::int64_t>(sizes(*size)) : std::nullopt;
    };
    if (const auto& mask = step.mask)
      result.mask = {mask->query, mask->key, limit(mask->reach), limit(mask->back)};
    bool uses_scratch = false;
    std::size_t most = 0;
    for (std::size_t p = 0; p < step.parts.size(); ++p) {
      const Part& part = step.parts[p];
      result.parts.push_back(part_of(result, part, rows[p], sizes));
      for (const Place& place : part.places) {
        const auto buffer = static_cast<std::size_t>(place.buffer);
        uses_scratch |= buffer >= buffers_ && scratch_[buffer - buffers_].of_thread;
      }
      most = std::max(most, aligned_bytes(whole_bytes(result.parts.back(), 1)));
    }
    result.thread_bytes = (uses_scratch ? thread_scratch_ : 0) + most;
    return result;
  }

  static PartOf part_of(const Step& step, const Part& part, const Planned::Rows& rows,
                        SizesAt& sizes) {
    PartOf of{.part = &part,
              .code = rows.code.get(),
              .strips = rows.strips.get(),
              .inside = part.inside,
              .pieces = part.pieces};
    const auto extent = [&](const Schedule::Extent& e) {
      const std::int64_t block =
          e.loop < 0 ? 1 : step.loops[static_cast<std::size_t>(e.loop)].block;
      return Extent{sizes(e.size) / block, e.loop};
    };
    of.rows = extent(part.product ? part.product->rows : part.rows.rows);
    of.length = extent(part.product ? part.product->columns : part.rows.length);
    of.depth = part.product ? extent(part.product->depth) : Extent{};
    for (const Place& place : part.places) {
      PlaceOf place_of{static_cast<std::size_t>(place.buffer),
                       sizes(place.offset) * bytes(place),
                       {},
                       sizes(place.row_step),
                       sizes(place.step)};
      for (const Size stride : place.strides)
        place_of.strides.push_back(sizes(stride) * bytes(place));
      of.places.push_back(std::move(place_of));
    }
    if (part.whole) {
      add_whole(of, step, part, sizes);
    } else if (part.rows.in_strips) {
      of.steps.emplace(part, sizes);
      if (of.strips == nullptr) {
        Part numbers = part;
        put_sizes(numbers, sizes);
        of.own_strips = StripRows::make(numbers);
        of.strips = of.own_strips.get();
      }
    } else if (of.code) {
      of.numbers = of.code->at(sizes);
    }
    for (const Schedule::RowNest& nest : part.rows.nests)
      of.asks_index |= asks_index(nest.body) || asks_index(nest.epilogue);
    return of;
  }

  /// How many elements an operand reaches back from its first point.
  static std::int64_t elements_before(const LoopNest& nest, const LoopNest::Operand& operand) {
    std::int64_t elements = 0;
    for (std::size_t a = 0; a < nest.axes.size(); ++a)
      elements -= std::min<std::int64_t>(operand.strides[a], 0) * (nest.axes[a].size - 1);
    return std::max<std::int64_t>(elements, 0);
  }

  static void add_whole(PartOf& of, const Step& step, const Part& part, SizesAt& sizes) {
    LoopNest nest = at_sizes(*part.whole, sizes);
    for (std::size_t o = 0; o < part.places.size(); ++o) {
      LoopNest::Operand& operand = nest.operand(o);
      operand.buffer = static_cast<int>(o);
      operand.offset = elements_before(nest, operand);
      of.places[o].offset -= operand.offset * static_cast<std::int64_t>(size_of(operand.dtype));
    }
    LoopNest rest = nest;
    for (std::size_t a = 0; a < part.loops.size(); ++a) {
      if (part.loops[a] < 0) continue;
      const Loop& loop = step.loops[static_cast<std::size_t>(part.loops[a])];
      const std::int64_t left = loop.size % loop.block;
      if (left == 0) continue;
      if (of.cut_by >= 0 && of.cut_by != part.loops[a])
        throw std::logic_error("kernel: a nest whose last pieces are shorter along two loops");
      of.cut_by = part.loops[a];
      rest.axes[a].size = nest.axes[a].size / loop.block * left;
    }
    if (!part.loops.empty()) simplify(nest);  // the axis that was cut may be of one point now
    of.whole = host::make_kernel(nest);
    if (of.cut_by < 0) return;
    simplify(rest);
    of.rest = host::make_kernel(rest);
  }

  /// Without engines, which count their own.
  std::size_t own_bytes() const {
    std::size_t bytes =
        sizeof *this + heap_bytes(scratch_) + block_bytes(steps_.capacity() * sizeof(Step));
    for (const Step& step : steps_) {
      bytes += heap_bytes(step.loops) + block_bytes(step.parts.capacity() * sizeof(PartOf));
      for (const PartOf& part : step.parts) {
        bytes += block_bytes(part.places.capacity() * sizeof(PlaceOf));
        for (const PlaceOf& place : part.places) bytes += heap_bytes(place.strides);
        if (part.own_strips) bytes += bytes_in_strips(*part.part);
        if (part.numbers) bytes += part.numbers->heap_bytes();
      }
    }
    return bytes;
  }

  static std::int64_t parts(const Step& step, int threads) {
    return std::min<std::int64_t>(step.units, threads);
  }

  static std::size_t whole_bytes(const PartOf& part, int threads) {
    std::size_t most = 0;
    for (const auto* kernel : {part.whole.get(), part.rest.get()})
      most = std::max(most, kernel ? kernel->workspace_bytes(threads) : 0);
    return most;
  }

  std::size_t step_bytes(const Step& step, int threads) const {
    if (step.units > 1) return static_cast<std::size_t>(parts(step, threads)) * step.thread_bytes;
    std::size_t most = 0;
    for (const PartOf& part : step.parts) most = std::max(most, whole_bytes(part, threads));
    return thread_scratch_ + most;
  }

  /// Each part begins with units of its own and then helps the others.
  void run_with_memory(const Step& step, const Run& run) const {
    struct Range {
      std::atomic<std::int64_t> next;
      std::int64_t end;
    };
    const std::int64_t threads = parts(step, run.threads);
    SmallArray<Range, 32> ranges(static_cast<std::size_t>(threads));
    for (std::int64_t t = 0; t < threads; ++t) {
      ranges[static_cast<std::size_t>(t)].next = step.units * t / threads;
      ranges[static_cast<std::size_t>(t)].end = step.units * (t + 1) / threads;
    }
    parallel_for(threads, [&](std::int64_t part) {
      std::byte* const memory =
          run.workspace + shared_ + static_cast<std::size_t>(part) * step.thread_bytes;
      for (std::int64_t t = 0; t < threads; ++t) {
        Range& range = ranges[static_cast<std::size_t>((part + t) % threads)];
        for (std::int64_t unit; (unit = range.next++) < range.end;)
          run_unit(step, run, unit, memory, 1);
      }
    });
  }

  /// `memory`: the thread's scratch, and behind it what engines need.
  void run_unit(const Step& step, const Run& run, std::int64_t unit, std::byte* memory,
                int threads) const {
    Pieces pieces(step.loops.size());
    if (step.loops.empty()) {  // small calls: without what loops need
      for (const PartOf& part : step.parts) run_part(step, part, run, pieces, memory, threads);
      return;
    }
    begin_unit(step.loops, unit, pieces);
    run_parts(
        step, pieces,
        [&](const PartOf& part) { run_part(step, part, run, pieces, memory, threads); }, 0,
        step.parts.size());
  }

  void run_part(const Step& step, const PartOf& part, const Run& run, Pieces& pieces,
                std::byte* memory, int threads) const {
    Addresses places(part.code ? part.code->places() : part.places.size());
    for (std::size_t p = 0; p < part.places.size(); ++p) {
      const PlaceOf& place = part.places[p];
      std::byte* at = place.offset + address(place.buffer, run, memory);
      for (std::size_t l = 0; l < pieces.size(); ++l) at += pieces[l] * place.strides[l];
      places[p] = at;
    }
    if (part.part->product) return run_product(step, part, pieces, places);
    if (part.whole) {
      const bool is_rest = part.cut_by >= 0 && is_last(step, part.cut_by, pieces);
      return (is_rest ? part.rest : part.whole)
          ->run(
              {{places.data(), part.places.size()}, memory + thread_scratch_, run.random, threads});
    }
    const Schedule::Rows& of_rows = part.part->rows;
    SmallArray<std::int64_t, 16> index(part.asks_index ? of_rows.axes.size() : 0);
    for (std::size_t a = 0; a < index.size(); ++a) {
      const int loop = of_rows.axes[a].loop;
      index[a] = loop < 0 ? 0
                          : step.loops[static_cast<std::size_t>(loop)].first(
                                pieces[static_cast<std::size_t>(loop)]);
    }
    const std::int64_t rows = count(step, part.rows, pieces),
                       length = count(step, part.length, pieces);
    if (part.code) return part.code->run(*part.numbers, places, rows, length, index.data());
    const PlaceOf& place = part.places[of_rows.nests[0].output];
    part.strips->run({*part.steps,
                      {places.data(), places.size()},
                      rows,
                      length,
                      {index.data(), index.size()},
                      place.offset + address(place.buffer, run, memory),
                      run.random});
  }

  static void run_product(const Step& step, const PartOf& part, Pieces& pieces, Addresses& places) {
    const std::int64_t rows = count(step, part.rows, pieces),
                       columns = count(step, part.length, pieces),
                       depth = count(step, part.depth, pieces);
    const auto matrix = [&](std::size_t p, std::int64_t of_rows, std::int64_t of_columns) {
      return MatrixRef<float>{reinterpret_cast<float*>(places[p]), of_rows, of_columns,
                              part.places[p].row_step, part.places[p].step};
    };
    gemm<float>(matrix(2, rows, columns), as_const(matrix(0, rows, depth)),
                as_const(matrix(1, depth, columns)), part.part->product->adds);
  }
  static MatrixRef<const float> as_const(const MatrixRef<float>& m) {
    return {m.data, m.rows, m.cols, m.row_stride, m.col_stride};
  }

  static std::int64_t count(const Step& step, const Extent& extent, Pieces& pieces) {
    if (extent.loop < 0) return extent.of_point;
    const auto l = static_cast<std::size_t>(extent.loop);
    return extent.of_point * step.loops[l].count(pieces[l]);
  }
  static bool is_last(const Step& step, int loop, Pieces& pieces) {
    const auto l = static_cast<std::size_t>(loop);
    return pieces[l] + 1 == step.loops[l].pieces();
  }

  std::byte* address(std::size_t buffer, const Run& run, std::byte* memory) const {
    if (buffer < buffers_) return run.buffers[buffer];
    const ScratchOf& scratch = scratch_[buffer - buffers_];
    return (scratch.of_thread ? memory : run.workspace) + scratch.at;
  }

  std::shared_ptr<const Planned> planned_;
  std::size_t buffers_;
  std::vector<ScratchOf> scratch_;
  std::size_t shared_ = 0, thread_scratch_ = 0;  // bytes
  std::vector<Step> steps_;
};

class SchedulePlan final : public KernelPlan {
 public:
  explicit SchedulePlan(std::shared_ptr<const Planned> planned) : planned_(std::move(planned)) {}
  std::unique_ptr<Kernel> at(SizesAt& sizes) const override {
    if (verifies_passes()) verify(at_sizes(planned_->schedule, sizes));
    return std::make_unique<ScheduledKernel>(planned_, sizes);
  }

 private:
  std::shared_ptr<const Planned> planned_;
};

}  // namespace

std::unique_ptr<const KernelPlan> plan_kernel(Schedule schedule) {
  const auto planned = std::make_shared<Planned>();
  planned->schedule = std::move(schedule);
  for (const Schedule::Step& step : planned->schedule.steps) {
    auto& rows = planned->rows.emplace_back();
    for (const Part& part : step.parts) {
      Planned::Rows& of_part = rows.emplace_back();
      if (part.whole || part.product) continue;
      if (part.rows.in_strips) {
        if (RowCode::sizes_of(part).empty()) of_part.strips = StripRows::make(part);
        if (of_part.strips) planned->kept.add(bytes_in_strips(part));
        continue;
      }
      of_part.code = std::make_unique<const RowsCode>(step, part);
      if (!of_part.code->is_ready()) return nullptr;
      planned->kept.add(of_part.code->own_bytes());
    }
  }
  planned->kept.add(sizeof(Planned) + heap_bytes(planned->schedule));
  return std::make_unique<SchedulePlan>(planned);
}

}  // namespace ein::host
