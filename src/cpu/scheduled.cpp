#include "cpu/scheduled.hpp"

#include <algorithm>
#include <atomic>

#include "cpu/cache.hpp"
#include "cpu/gemm.hpp"
#include "cpu/parallel.hpp"
#include "cpu/row_code.hpp"
#include "cpu/strip.hpp"
#include "cpu/strip_rows.hpp"
#include "nest/combine.hpp"
#include "tensor/small_array.hpp"

namespace ein::host {
namespace {

using Place = Schedule::Place;
using Part = Schedule::Part;
using Addresses = SmallArray<std::byte*, most_places>;

/// Rows that are combined are added up in runs of so many, so that the error of a sum stays small;
/// and so many at a time within a run.
constexpr std::int64_t rows_in_run = 32, rows_at_once = 4;

std::int64_t bytes(const Place& place) { return static_cast<std::int64_t>(size_of(place.dtype)); }

/// Whether what nest n writes could pass by the caches.
bool could_stream(const Part& part, std::size_t n) {
  const Schedule::RowNest& nest = part.rows.nests[n];
  const Place& place = part.places[nest.output];
  if (nest.combine || nest.is_scalar || place.dtype != DType::f32 || place.step != 1 ||
      !place.is_kept)
    return false;
  if (place.row_step * bytes(place) % line_bytes != 0) return false;
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
  part.places.push_back({.step = 1, .is_kept = false});
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
      values[v] = Ex::apply(scalar_op(*one.combine), values[2 * v], values[2 * v + 1]);
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(half), values.end());
  }
  nest.output = several.places.size();
  several.places.push_back(part.places[one.output]);
  nest.body = values[0];
  several.rows.nests = {std::move(nest)};
  return several;
}

/// The code of a part's rows.
class RowsCode {
 public:
  /// Of a part of a step; is_ready() says whether there is code.
  RowsCode(const Schedule::Step& step, const Part& part)
      : part_(RowCode::combines_rows(part) ? part : with_maps(part)), streaming_(part_) {
    code_ = RowCode::compile(part_);
    if (RowCode::combines_rows(part)) return;
    for (const Schedule::RowNest& nest : part.rows.nests) {
      if (nest.combine && nest.over == Schedule::Over::rows)
        combines_.push_back({nest.output, identity<float>(*nest.combine)});
    }
    if (part.rows.nests.size() == 1 && combines_.size() == 1) make_code_of_runs(part);
    // Where all that is read and written is more than the cache holds, results leave it before they
    // are read again, and each line of them would first be read.
    if (code_ && !is_in_runs_ && bytes_of(step, part) >= last_level_cache_bytes())
      make_streaming_code();
  }

  bool is_ready() const { return code_ && (!is_in_runs_ || add_); }
  std::size_t places() const { return streaming_.places.size(); }

  /// `places`, of which those behind the part's are still free.
  void run(Addresses& places, std::int64_t rows, std::int64_t length, std::int64_t* index) const {
    if (is_in_runs_) return run_in_runs(places, rows, length, index);
    for (const auto& [p, number] : combines_)
      std::fill_n(reinterpret_cast<float*>(places[p]), length, number);
    const bool streams = streaming_code_ && are_aligned(places);
    if (streams) {
      const std::size_t row = static_cast<std::size_t>(part_.rows.length.size),
                        first = part_.places.size();
      float* beside = strip_scratch<float>(row * (places.size() - first));
      for (std::size_t p = first; p < places.size(); ++p, beside += row)
        places[p] = reinterpret_cast<std::byte*>(beside);
    }
    (streams ? *streaming_code_ : *code_)({places.data(), length, rows, index});
  }

 private:
  /// Bytes that a step reads and writes at a part's places.
  static std::int64_t bytes_of(const Schedule::Step& step, const Part& part) {
    std::int64_t all = 0;
    for (const Place& place : part.places) {
      if (!place.is_kept || place.step == 0) continue;
      std::int64_t elements = part.rows.length.loop < 0 ? part.rows.length.size : 1;
      if (place.row_step != 0 && part.rows.rows.loop < 0) elements *= part.rows.rows.size;
      for (std::size_t l = 0; l < step.loops.size(); ++l) {
        if (place.strides[l] != 0) elements *= step.loops[l].size;
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
    if (std::none_of(nest.body.steps.begin(), nest.body.steps.end(), asks_row))
      several_ = RowCode::compile(with_maps(several_at_once(part, rows_at_once)));
    Part add{.places = {{.step = 1}, {.step = 1}}};
    add.rows.length = part.rows.length;
    add.rows.nests = {
        {.inputs = {0, 1}, .output = 1, .body = combined(*nest.combine, Ex::input(0), 1)}};
    add_ = RowCode::compile(add);
  }

  void run_in_runs(Addresses& places, std::int64_t rows, std::int64_t length,
                   std::int64_t* index) const {
    const auto [output, number] = combines_[0];
    auto* const result = reinterpret_cast<float*>(places[output]);
    float one_run[longest_run];
    for (std::int64_t row = 0; row < rows; row += rows_in_run) {
      float* const into = row == 0 ? result : one_run;
      std::fill_n(into, length, number);
      const std::int64_t count = std::min(rows_in_run, rows - row),
                         together = several_ ? count / rows_at_once * rows_at_once : 0;
      if (together > 0)
        run_rows(*several_, rows_at_once, places, row, together, length, into, index);
      if (together < count)
        run_rows(*code_, 1, places, row + together, count - together, length, into, index);
      if (into == result) continue;
      std::byte* ends[] = {reinterpret_cast<std::byte*>(into),
                           reinterpret_cast<std::byte*>(result)};
      (*add_)({ends, length, 1, nullptr});
    }
  }

  /// By code that takes `at_once` of them; the only nest's inputs are all places but its output.
  void run_rows(const RowCode& code, std::int64_t at_once, Addresses& places, std::int64_t row,
                std::int64_t rows, std::int64_t length, float* into, std::int64_t* index) const {
    const Schedule::RowNest& nest = part_.rows.nests[0];
    const std::size_t inputs = nest.inputs.size() - 1;  // the last is the result so far
    Addresses of_rows(static_cast<std::size_t>(at_once) * inputs + 1);
    for (std::int64_t r = 0; r < at_once; ++r) {
      for (std::size_t i = 0; i < inputs; ++i) {
        const Place& place = part_.places[nest.inputs[i]];
        of_rows[static_cast<std::size_t>(r) * inputs + i] =
            places[nest.inputs[i]] + (row + r) * place.row_step * bytes(place);
      }
    }
    of_rows[of_rows.size() - 1] = reinterpret_cast<std::byte*>(into);
    for (std::size_t a = 0; a < part_.rows.axes.size(); ++a)
      index[a] += part_.rows.axes[a].is_row ? row : 0;
    code({of_rows.data(), length, rows / at_once, index});
    for (std::size_t a = 0; a < part_.rows.axes.size(); ++a)
      index[a] -= part_.rows.axes[a].is_row ? row : 0;
  }

  static constexpr std::size_t longest_run = 16384;  // elements of a row that is combined in runs

  Part part_, streaming_;  // with maps
  std::unique_ptr<const RowCode> code_, streaming_code_;
  std::vector<std::pair<std::size_t, float>>
      combines_;  // places of rows that combine others, and what they begin as
  bool is_in_runs_ = false;
  std::unique_ptr<const RowCode> several_, add_;  // add_: a run to the result so far
};

class ScheduledKernel final : public Kernel {
 public:
  explicit ScheduledKernel(const Schedule& schedule) : buffers_(schedule.buffers) {
    for (const Schedule::Scratch& scratch : schedule.scratch) {
      std::size_t& all = scratch.of_thread ? thread_scratch_ : shared_;
      scratch_.push_back({all, scratch.of_thread});
      all += aligned_bytes(static_cast<std::size_t>(scratch.elements) * size_of(scratch.dtype));
    }
    for (const Schedule::Step& step : schedule.steps) steps_.push_back(step_of(step));
  }

  bool is_ready() const { return is_ready_; }

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
  struct PartOf {
    std::vector<PlaceOf> places;
    Schedule::Rows rows;
    std::optional<Schedule::Product> product;
    std::unique_ptr<RowsCode> code;
    std::unique_ptr<const StripRows> strips;
    std::unique_ptr<Kernel> whole;
    std::size_t inside;
    Schedule::Pieces pieces;
    bool asks_index = false;
  };
  struct Step {
    std::vector<Schedule::Loop> loops;
    std::vector<PartOf> parts;
    std::optional<Schedule::Mask> mask;
    std::int64_t units = 1;
    std::size_t thread_bytes = 0;  // that each thread needs, if there are several units
  };
  struct ScratchOf {
    std::size_t at;
    bool of_thread;
  };

  Step step_of(const Schedule::Step& step) {
    Step result;
    result.loops = step.loops;
    result.units = step.units();
    result.mask = step.mask;
    bool uses_scratch = false;
    std::size_t most = 0;
    for (const Part& part : step.parts) {
      PartOf of;
      of.rows = part.rows;
      of.product = part.product;
      of.inside = part.inside;
      of.pieces = part.pieces;
      for (const Place& place : part.places) {
        const auto buffer = static_cast<std::size_t>(place.buffer);
        uses_scratch |= buffer >= buffers_ && scratch_[buffer - buffers_].of_thread;
        PlaceOf place_of{buffer, place.offset * bytes(place), {}, place.row_step, place.step};
        for (std::int64_t stride : place.strides) place_of.strides.push_back(stride * bytes(place));
        of.places.push_back(std::move(place_of));
      }
      if (part.whole) {
        LoopNest nest = *part.whole;
        for (std::size_t o = 0; o < part.places.size(); ++o) {
          LoopNest::Operand& operand = nest.operand(o);
          operand.buffer = static_cast<int>(o);
          operand.offset = 0;
        }
        of.whole = host::make_kernel(nest);
        most = std::max(most, aligned_bytes(of.whole->workspace_bytes(1)));
      } else if (part.rows.in_strips) {
        of.strips = StripRows::make(part);
      } else if (!part.product) {
        of.code = std::make_unique<RowsCode>(step, part);
        is_ready_ &= of.code->is_ready();
      }
      for (const Schedule::RowNest& nest : part.rows.nests)
        of.asks_index |= asks_index(nest.body) || asks_index(nest.epilogue);
      result.parts.push_back(std::move(of));
    }
    result.thread_bytes = (uses_scratch ? thread_scratch_ : 0) + most;
    return result;
  }

  static std::int64_t parts(const Step& step, int threads) {
    return std::min<std::int64_t>(step.units, threads);
  }

  std::size_t step_bytes(const Step& step, int threads) const {
    if (step.units > 1) return static_cast<std::size_t>(parts(step, threads)) * step.thread_bytes;
    std::size_t most = 0;
    for (const PartOf& part : step.parts)
      most = std::max(most, part.whole ? part.whole->workspace_bytes(threads) : 0);
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
    if (part.product) return run_product(step, part, pieces, places);
    if (part.whole) {
      return part.whole->run(
          {{places.data(), part.places.size()}, memory + thread_scratch_, run.random, threads});
    }
    SmallArray<std::int64_t, 16> index(part.asks_index ? part.rows.axes.size() : 0);
    for (std::size_t a = 0; a < index.size(); ++a) {
      const int loop = part.rows.axes[a].loop;
      index[a] = loop < 0 ? 0
                          : step.loops[static_cast<std::size_t>(loop)].first(
                                pieces[static_cast<std::size_t>(loop)]);
    }
    const std::int64_t rows = count(step, part.rows.rows, pieces),
                       length = count(step, part.rows.length, pieces);
    if (part.code) return part.code->run(places, rows, length, index.data());
    const PlaceOf& place = part.places[part.rows.nests[0].output];
    part.strips->run({{places.data(), places.size()},
                      rows,
                      length,
                      {index.data(), index.size()},
                      place.offset + address(place.buffer, run, memory),
                      run.random});
  }

  static void run_product(const Step& step, const PartOf& part, Pieces& pieces, Addresses& places) {
    const std::int64_t rows = count(step, part.product->rows, pieces),
                       columns = count(step, part.product->columns, pieces),
                       depth = count(step, part.product->depth, pieces);
    const auto matrix = [&](std::size_t p, std::int64_t of_rows, std::int64_t of_columns) {
      return MatrixRef<float>{reinterpret_cast<float*>(places[p]), of_rows, of_columns,
                              part.places[p].row_step, part.places[p].step};
    };
    gemm<float>(matrix(2, rows, columns), as_const(matrix(0, rows, depth)),
                as_const(matrix(1, depth, columns)), part.product->adds);
  }
  static MatrixRef<const float> as_const(const MatrixRef<float>& m) {
    return {m.data, m.rows, m.cols, m.row_stride, m.col_stride};
  }

  static std::int64_t count(const Step& step, const Schedule::Extent& extent, Pieces& pieces) {
    if (extent.loop < 0) return extent.size;
    const auto l = static_cast<std::size_t>(extent.loop);
    return step.loops[l].count(pieces[l]);
  }

  std::byte* address(std::size_t buffer, const Run& run, std::byte* memory) const {
    if (buffer < buffers_) return run.buffers[buffer];
    const ScratchOf& scratch = scratch_[buffer - buffers_];
    return (scratch.of_thread ? memory : run.workspace) + scratch.at;
  }

  std::size_t buffers_;
  std::vector<ScratchOf> scratch_;
  std::size_t shared_ = 0, thread_scratch_ = 0;  // bytes
  std::vector<Step> steps_;
  bool is_ready_ = true;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Schedule& schedule) {
  auto kernel = std::make_unique<ScheduledKernel>(schedule);
  return kernel->is_ready() ? std::move(kernel) : nullptr;
}

}  // namespace ein::host
