#include "cpu/row_code.hpp"

#include "machine/cache.hpp"
#include "machine/fork.hpp"
#include "size/ask.hpp"
#include "tensor/heap_bytes.hpp"

namespace ein::host {

const Target& RowCode::target_without_code() {
  return made_once([] {
    Target target;
    target.line_bytes = line_bytes;
    target.fit(caches().l2);
    return target;
  });
}

std::vector<Size> RowCode::sizes_of(const Schedule::Part& part) {
  std::vector<Size> sizes;
  for (const Schedule::RowNest& nest : part.rows.nests) {
    for (const ScalarExpr* expr : {&nest.body, &nest.epilogue}) {
      for (const ScalarStep& step : expr->steps) {
        if (step.op == ScalarOp::size) sizes.push_back(step.size);
      }
    }
  }
  return sizes;
}

}  // namespace ein::host

#if EIN_ASMJIT
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <asmjit/core.h>

#include "cpu/assembler_errors.hpp"
#include "cpu/code_memory.hpp"
#include "cpu/vector_code.hpp"
#include "graph/fields.hpp"
#include "machine/float_mode.hpp"
#include "machine/fork.hpp"
#include "nest/combine.hpp"
#include "nest/skipped_sum.hpp"

namespace ein::host {
namespace {

using Int = Assembler::Int;
using Vector = Assembler::Vector;
using Mask = Assembler::Mask;
using Address = Assembler::Address;
using Tail = Assembler::Tail;

/// So many vectors of a row that is combined are worked on side by side: several sums hide the time
/// that an addition takes. The same for all nests, so that a sum does not depend on what shares its
/// loop.
constexpr int sums_side_by_side = 4;
/// The most vectors of a row for which a long function is evaluated at once: its instructions wait
/// for each other, and those of other vectors hide that latency.
constexpr int vectors_interleaved = 4;
/// A cascade of sums, as in strips: the runs in a block, the blocks in a larger one, and the number
/// of levels.
constexpr std::int64_t runs_in_block = 16;
constexpr std::size_t levels_of_sums = 3;
/// Rows shorter than this, in vectors, are combined together, as many as a vector has lanes. Longer
/// ones hide the time that combining their lanes takes.
constexpr std::int64_t vectors_together = 4;

int lanes_of(Isa isa, DType compute) {
  return Assembler::vector_bytes(isa) / static_cast<int>(size_of(compute));
}

bool can_load(DType dtype, DType compute) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return compute == DType::f64;
    case DType::f32:
    case DType::bf16:
    case DType::f16:
    case DType::i32:
    case DType::u8:
    case DType::boolean:
      return true;
    default:
      return false;
  }
}
bool can_store(DType dtype, DType compute) {
  return dtype == compute || dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
}

bool can_read(DType dtype, Size size, DType compute) {
  if (!size.is_number()) return false;
  const std::int64_t step = size;
  if (dtype == DType::i64 && step == 0) return true;
  return can_load(dtype, compute) && (step == 0 || step == 1 || (step == 2 && dtype == compute));
}

/// The others look for NaN, row by row.
bool can_combine_together(Combine combine) { return !info(combine).selects; }

bool can_combine(Combine combine) { return !info(combine).asks; }

std::int64_t vectors_of(std::int64_t length, int lanes) { return (length + lanes - 1) / lanes; }

Size bytes_to_next_row(const Schedule::Place& place) {
  return place.row_step * size_of(place.dtype);
}

/// Whether as many rows as a vector has lanes can be combined together, into results side by side:
/// a sum or product of short rows, of values that do not change from row to row but along it.
bool combines_together(const Schedule::Part& part, int lanes) {
  // From the first row to the last of a vector is less than an instruction's address can add.
  const auto is_near = [&](const Schedule::Place& place) {
    constexpr std::int64_t reach = 1 << 30;
    return place.row_step.is_number() &&
           std::abs(static_cast<std::int64_t>(bytes_to_next_row(place))) < reach / lanes;
  };
  if (part.rows.nests.size() != 1 || part.rows.length.loop >= 0 ||
      !part.rows.length.size.is_number() || part.rows.length.size >= vectors_together * lanes ||
      !std::all_of(part.places.begin(), part.places.end(), is_near))
    return false;
  const Schedule::RowNest& nest = part.rows.nests[0];
  if (!nest.combine || !can_combine_together(*nest.combine) ||
      !ask_equal(part.places[nest.output].row_step, 1))
    return false;
  for (const ScalarExpr* expr : {&nest.body, &nest.epilogue}) {
    for (const ScalarStep& step : expr->steps) {
      if (step.op == ScalarOp::index) return false;
      if (step.op != ScalarOp::input || (expr == &nest.epilogue && step.which == 0)) continue;
      const Schedule::Place& place = part.places[nest.inputs[static_cast<std::size_t>(step.which)]];
      if (ask_equal(place.step, 0) && !ask_equal(place.row_step, 0)) return false;
    }
  }
  return true;
}

/// Whether the code knows the part's numbers, as it works on several rows together. Other code
/// reads from the call how long a row is and how far it is to the next, and suits them all.
bool knows_numbers(const Schedule::Part& part, Isa isa) {
  return RowCode::combines_rows(part, isa) ||
         combines_together(part, lanes_of(isa, part.rows.compute));
}

/// Elements of a row that make a run.
constexpr std::int64_t elements_in_run(int lanes) { return run_length * sums_side_by_side * lanes; }

/// Whether a row is so long that runs of it are combined first.
bool has_runs(const Schedule::Part& part, int lanes) {
  return part.rows.length.size > elements_in_run(lanes);
}

/// An expression without repetitions: each step with the position of the first that is equal to it.
struct Expression {
  std::vector<ScalarStep> steps;
  std::vector<int> uses;  // by other steps and as the value
  int value = -1;

  explicit Expression(const ScalarExpr& expr) {
    std::vector<int> place;
    for (ScalarStep step : expr.steps) {
      step.move_arguments(place);
      const auto found = std::find(steps.begin(), steps.end(), step);
      place.push_back(static_cast<int>(found - steps.begin()));
      if (found == steps.end()) steps.push_back(step);
    }
    value = place.back();
    uses.assign(steps.size(), 0);
    std::vector<bool> needed(steps.size(), false);
    needed[static_cast<std::size_t>(value)] = true;
    uses[static_cast<std::size_t>(value)] = 1;
    for (std::size_t s = steps.size(); s-- > 0;) {
      if (!needed[s]) continue;
      for (int i = 0; i < info(steps[s].op).arity; ++i) {
        const auto arg = static_cast<std::size_t>(steps[s].args[i]);
        needed[arg] = true;
        ++uses[arg];
      }
    }
  }
  const ScalarStep& step(int s) const { return steps[static_cast<std::size_t>(s)]; }
};

/// Nests that share one loop along the row.
struct Stage {
  std::vector<std::size_t> nests;
  bool is_scalar = false;
};

class Emitter {
 public:
  Emitter(const Schedule::Part& part, Isa isa, Assembler& code)
      : part_(part),
        combines_rows_(RowCode::combines_rows(part, isa)),
        combines_together_(combines_together(part, code.lanes())),
        knows_numbers_(combines_rows_ || combines_together_),
        code_(code),
        lanes_(code.lanes()) {
    for (const Schedule::RowNest& nest : part.rows.nests) {
      bodies_.emplace_back(nest.body);
      epilogues_.push_back(nest.epilogue.steps.empty() ? std::nullopt
                                                       : std::optional<Expression>(nest.epilogue));
    }
    if (has_bf16_nans()) code_.expect_bf16_nans();
  }

  void emit() {
    const Int call = code_.begin();
    places_ = code_.load_int(call, offsetof(RowCode::Call, places));
    length_ = code_.load_int(call, offsetof(RowCode::Call, length));
    rows_ = code_.load_int(call, offsetof(RowCode::Call, rows));
    index_ = code_.load_int(call, offsetof(RowCode::Call, index));
    sizes_ = code_.load_int(call, offsetof(RowCode::Call, sizes));
    row_ = zero();
    read_row_steps(call);
    code_.begin_constants();
    if (combines_rows_)
      emit_rows_combined();
    else
      emit_rows();
    if (std::any_of(part_.places.begin(), part_.places.end(),
                    [](const Schedule::Place& place) { return place.streams; }))
      code_.finish_streaming();
    code_.end();
  }

 private:
  void emit_rows() {
    const asmjit::Label next_row = code_.new_label(), end = code_.new_label();
    if (combines_together_) {
      emit_rows_together();
      code_.jump_if_not_less(row_, rows_, end);
    }
    code_.bind(next_row);
    written_of_row_.clear();
    const std::vector<Stage> in_order = stages();
    for (std::size_t s = 0; s < in_order.size(); ++s) {
      if (in_order[s].is_scalar)
        emit_scalars(in_order[s]);
      else
        emit_loop(in_order[s], first_read_after(in_order, s));
    }
    move_by_rows(1);
    code_.jump_if_less(row_, rows_, next_row);
    code_.bind(end);
  }

  /// They stay in registers: sums of rows of 130 elements take a third less time than where they
  /// are read from memory for each row.
  void read_row_steps(const Int& call) {
    const Int row_steps = code_.load_int(call, offsetof(RowCode::Call, row_steps));
    for (std::size_t p = 0; p < part_.places.size(); ++p) {
      Int& bytes = bytes_to_next_row_.emplace_back();
      const Size row_step = part_.places[p].row_step;
      if (knows_numbers_ ? row_step.is_number() : always_equal(row_step, 0)) continue;
      bytes = code_.load_int(row_steps, static_cast<std::int64_t>(8 * p));
    }
  }

  void move_by_rows(std::int64_t rows) {
    for (std::size_t p = 0; p < part_.places.size(); ++p) {
      if (always_equal(part_.places[p].row_step, 0)) continue;
      code_.add_to_memory(places_, static_cast<std::int64_t>(8 * p), bytes_of_rows(p, rows));
    }
    code_.add(row_, rows);
  }

  /// Bytes from a row to the one `rows` later; to the next one, unless the code knows the numbers.
  Int bytes_of_rows(std::size_t place, std::int64_t rows) {
    if (bytes_to_next_row_[place].reg.isValid()) return bytes_to_next_row_[place];
    return integer(static_cast<std::int64_t>(bytes_to_next_row(part_.places[place])) * rows);
  }

  Int integer(std::int64_t value) {
    const Int x = code_.new_int();
    code_.set(x, value);
    return x;
  }
  Int zero() { return integer(0); }

  /// Of what is in the last vector of a row of fixed length; none where it is full.
  std::optional<Tail> tail_of_last() {
    const std::int64_t in_last = part_.rows.length.size % lanes_;
    if (in_last == 0) return std::nullopt;
    return code_.tail(integer(in_last));
  }

  /// Results stay in registers: what is read is all that moves. NaN among values of which the
  /// greatest or least is taken is rare: it is looked for in two at a time, and where there is one
  /// all is done again with care.
  void emit_rows_combined() {
    const std::vector<Schedule::RowNest>& nests = part_.rows.nests;
    const auto vectors = static_cast<int>(vectors_of(part_.rows.length.size, lanes_));
    const std::optional<Tail> tail = tail_of_last();
    Results results(nests.size());
    for (std::size_t n = 0; n < nests.size(); ++n) {
      for (int v = 0; v < vectors; ++v) results[n].push_back(start(n));
    }
    const auto lanes = [&] {
      of_row_ = {};
      std::vector<Lane> lanes;
      for (int v = 0; v < vectors; ++v)
        lanes.push_back({.unrolled = v, .tail = tail && v + 1 == vectors ? &*tail : nullptr});
      return lanes;
    };
    i_ = zero();
    for (std::size_t p = 0; p < part_.places.size(); ++p) address(p);
    const asmjit::Label store = code_.new_label();
    if (std::all_of(nests.begin(), nests.end(),
                    [](const auto& nest) { return info(*nest.combine).selects; })) {
      const Mask found = code_.none();
      emit_extremes_of_numbers(results, lanes, found);
      code_.jump_if_none(found, store);
      for (std::size_t p = 0; p < part_.places.size(); ++p)
        code_.set(address(p), code_.load_int(places_, static_cast<std::int64_t>(8 * p)));
      code_.set(row_, 0);
      for (std::size_t n = 0; n < nests.size(); ++n) {
        for (const Vector& result : results[n])
          code_.set(result, code_.constant(identity<double>(*nests[n].combine)));
      }
    }
    emit_runs_of_rows(results, lanes);
    code_.bind(store);
    std::vector<Lane> of_results = lanes();
    for (std::size_t n = 0; n < nests.size(); ++n) {
      for (std::size_t v = 0; v < of_results.size(); ++v) {
        Lane& lane = of_results[v];
        const Vector result = epilogues_[n] ? epilogue(n, results[n][v], &lane) : results[n][v];
        code_.store(at(nests[n].output, lane), part_.places[nests[n].output].dtype, result,
                    lane.tail, false);
      }
    }
  }

  using Results = std::vector<std::vector<Vector>>;  // of each nest, vector after vector

  void next_row_of_places() {
    for (std::size_t p = 0; p < part_.places.size(); ++p) {
      if (!always_equal(part_.places[p].row_step, 0)) code_.add(address(p), bytes_of_rows(p, 1));
    }
    code_.add(row_, 1);
  }

  /// Runs of rows are combined first.
  template <class Lanes>
  void emit_runs_of_rows(const Results& results, const Lanes& lanes) {
    const std::vector<Schedule::RowNest>& nests = part_.rows.nests;
    Results of_run(nests.size());
    for (std::size_t n = 0; n < nests.size(); ++n) {
      for (std::size_t v = 0; v < results[n].size(); ++v) of_run[n].push_back(start(n));
    }
    const Int run_end = code_.new_int();
    const asmjit::Label next_run = code_.new_label(), next_row = code_.new_label();
    code_.bind(next_run);
    begin_run(run_end, row_, run_length, rows_);
    code_.bind(next_row);
    std::vector<Lane> at_row = lanes();
    for (std::size_t n = 0; n < nests.size(); ++n) {
      emit_of_row(n);
      for (std::size_t v = 0; v < at_row.size(); ++v) combine_into(n, of_run[n][v], at_row[v]);
    }
    next_row_of_places();
    code_.jump_if_less(row_, run_end, next_row);
    for (std::size_t n = 0; n < nests.size(); ++n) {
      for (std::size_t v = 0; v < results[n].size(); ++v) {
        merge(n, results[n][v], of_run[n][v], nullptr);
        code_.set(of_run[n][v], code_.constant(identity<double>(*nests[n].combine)));
      }
    }
    code_.jump_if_less(row_, rows_, next_run);
  }

  /// The greatest or least, right where no value is NaN; `found` says whether one is.
  template <class Lanes>
  void emit_extremes_of_numbers(const Results& results, const Lanes& lanes, const Mask& found) {
    const asmjit::Label next_row = code_.new_label();
    code_.bind(next_row);
    std::vector<Lane> at_row = lanes();
    std::optional<Vector> before;
    for (std::size_t n = 0; n < part_.rows.nests.size(); ++n) {
      emit_of_row(n);
      for (std::size_t v = 0; v < at_row.size(); ++v) {
        const Vector x = value(n, bodies_[n].value, &at_row[v]);
        code_.combine(*part_.rows.nests[n].combine, results[n][v], x, nullptr);
        if (before) code_.note(found, code_.is_nan(*before, x), nullptr);
        before = before ? std::nullopt : std::optional(x);
      }
    }
    if (before) code_.note(found, code_.is_nan(*before, *before), nullptr);
    next_row_of_places();
    code_.jump_if_less(row_, rows_, next_row);
  }

  /// end = begin + count, or `most` if that is less.
  void begin_run(const Int& end, const Int& begin, std::int64_t count, const Int& most) {
    code_.set(end, begin);
    code_.add(end, count);
    code_.lower_to(end, most);
  }

  void emit_rows_together() {
    const Schedule::RowNest& nest = part_.rows.nests[0];
    const std::int64_t vectors = vectors_of(part_.rows.length.size, lanes_);
    const Int left = code_.new_int();
    const std::optional<Tail> tail = tail_of_last();
    i_ = zero();
    const asmjit::Label next = code_.new_label(), end = code_.new_label();
    code_.bind(next);
    code_.set(left, rows_);
    code_.subtract(left, row_);
    code_.jump_if_less(left, lanes_, end);
    begin_stage();
    emit_of_row(0);
    for (std::size_t p : nest.inputs) address(p);
    std::vector<Vector> sums;
    for (int r = 0; r < lanes_; ++r) {
      sums.push_back(start(0));
      for (int v = 0; v < vectors; ++v) {
        Lane lane{.unrolled = v, .row = r, .tail = tail && v + 1 == vectors ? &*tail : nullptr};
        combine_into(0, sums.back(), lane);
      }
    }
    const Vector all = code_.combine_lanes_of(*nest.combine, sums);
    const Vector result = epilogues_[0] ? epilogue(0, all) : all;
    code_.store({address(nest.output)}, part_.places[nest.output].dtype, result, nullptr, false);
    move_by_rows(lanes_);
    code_.jump(next);
    code_.bind(end);
    begin_stage();
  }

  /// Each nest in the first loop that it can be in: behind the loops that combine what it reads.
  std::vector<Stage> stages() const {
    std::vector<Stage> result;
    std::vector<std::size_t> stage_of;
    for (std::size_t n = 0; n < part_.rows.nests.size(); ++n) {
      const Schedule::RowNest& nest = part_.rows.nests[n];
      std::size_t s = 0;
      for (std::size_t m = 0; m < n; ++m) {
        const Schedule::RowNest& before = part_.rows.nests[m];
        const bool needs_row =
            reads(nest, before.output) && (before.combine || before.is_scalar || nest.is_scalar);
        if (needs_row)
          s = std::max(s, stage_of[m] + 1);
        else if (reads(nest, before.output) || reads(before, nest.output) ||
                 before.output == nest.output)
          s = std::max(s, stage_of[m]);
      }
      while (s < result.size() && result[s].is_scalar != nest.is_scalar) ++s;
      if (s == result.size()) result.push_back({{}, nest.is_scalar});
      result[s].nests.push_back(n);
      stage_of.push_back(s);
    }
    return result;
  }

  static bool reads(const Schedule::RowNest& nest, std::size_t place) {
    return std::find(nest.inputs.begin(), nest.inputs.end(), place) != nest.inputs.end();
  }

  /// A prefetch for the next loop, at the index of this one: of which operand, and whether of the
  /// next row.
  struct Ahead {
    std::size_t place;
    bool is_next_row;
  };

  /// What the loop after stage s is the first to read of the row, or that of the next row. Where a
  /// row has one loop there is none: the hardware prefetcher follows it.
  std::vector<Ahead> first_read_after(const std::vector<Stage>& stages, std::size_t s) const {
    std::size_t next = s;
    do next = (next + 1) % stages.size();
    while (stages[next].is_scalar);
    if (next == s) return {};
    const bool is_next_row = next < s;
    std::set<std::size_t> touched;
    for (std::size_t t = 0; t <= s && !is_next_row; ++t) {
      for (std::size_t n : stages[t].nests) {
        touched.insert(part_.rows.nests[n].inputs.begin(), part_.rows.nests[n].inputs.end());
        touched.insert(part_.rows.nests[n].output);
      }
    }
    std::vector<Ahead> result;
    for (std::size_t n : stages[next].nests) {
      for (std::size_t p : part_.rows.nests[n].inputs) {
        const Schedule::Place& place = part_.places[p];
        if (ask_equal(place.step, 0) || always_equal(place.row_step, 0) ||
            !touched.insert(p).second)
          continue;
        result.push_back({p, is_next_row});
      }
    }
    return result;
  }

  /// What has been computed at one place of the row, or for the row as a whole.
  struct Known {
    std::map<std::size_t, Vector> places;
    std::map<std::pair<std::size_t, int>, Vector>
        steps;  // of a nest; epilogues count from nests.size() on
    std::map<std::array<std::uint32_t, 5>, Vector>
        results;  // of an operation and the registers of its arguments
  };
  /// One vector of elements of the row.
  struct Lane {
    Known known{};
    int unrolled = 0;
    int row = 0;  // of those that are worked on together
    const Tail* tail = nullptr;
  };

  using Sums = std::map<std::size_t, std::vector<Vector>>;  // of a nest

  const Expression& expression(std::size_t e) const {
    return e < bodies_.size() ? bodies_[e] : *epilogues_[e - bodies_.size()];
  }
  const Schedule::RowNest& nest_of(std::size_t e) const {
    return part_.rows.nests[e % bodies_.size()];
  }

  /// Whether a step's value changes along the row.
  bool varies(std::size_t e, int s) {
    const auto [found, is_new] = varies_.try_emplace({e, s}, false);
    if (!is_new) return found->second;
    const ScalarStep& step = expression(e).step(s);
    bool result = false;
    const bool is_epilogue = e >= bodies_.size();
    if (nest_of(e).is_scalar || (is_epilogue && nest_of(e).over == Schedule::Over::row)) {
      result = false;
    } else if (is_epilogue && step.op == ScalarOp::input && step.which == 0) {
      result = true;  // a row of combined values
    } else if (step.op == ScalarOp::input) {
      result =
          !ask_equal(part_.places[nest_of(e).inputs[static_cast<std::size_t>(step.which)]].step, 0);
    } else if (step.op == ScalarOp::index) {
      result = part_.rows.axes[static_cast<std::size_t>(step.which)].is_along;
    } else {
      for (int i = 0; i < info(step.op).arity; ++i) result |= varies(e, step.args[i]);
    }
    varies_[{e, s}] = result;
    return result;
  }

  Int address(std::size_t place) {
    const auto [found, is_new] = addresses_.try_emplace(place);
    if (is_new) found->second = code_.load_int(places_, static_cast<std::int64_t>(8 * place));
    return found->second;
  }

  Address at(std::size_t p, const Lane& lane) {
    const Size row_step = bytes_to_next_row(part_.places[p]);
    return at(address(p), p, lane,
              lane.row == 0 ? 0 : lane.row * static_cast<std::int64_t>(row_step));
  }
  /// The address of place p, `behind` elements after `base`.
  Address at(const Int& base, std::size_t p, const Lane& lane, std::int64_t behind) {
    const auto bytes = static_cast<std::int32_t>(size_of(part_.places[p].dtype)) *
                       (ask_equal(part_.places[p].step, 2) ? 2 : 1);
    const auto shift =
        static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint32_t>(bytes)));
    return {base, i_, shift, static_cast<std::int32_t>(behind) + lane.unrolled * lanes_ * bytes};
  }

  Vector index(std::size_t axis, const Lane* lane) {
    const Int value = code_.load_int(index_, static_cast<std::int64_t>(8 * axis));
    if (part_.rows.axes[axis].is_row) code_.add(value, row_);
    if (!part_.rows.axes[axis].is_along || !lane) return code_.number(value);
    code_.add(value, i_);
    code_.add(value, lane->unrolled * lanes_);
    return code_.count_from(value);
  }

  /// The value of a step: of the whole row where it does not vary, else at `lane`.
  Vector value(std::size_t e, int s, Lane* lane) {
    const ScalarStep& step = expression(e).step(s);
    if (step.op == ScalarOp::constant) return code_.constant(step.real);
    const bool is_of_row = !varies(e, s);
    Known& known = is_of_row ? of_row_ : lane->known;
    if (const auto found = known.steps.find({e, s}); found != known.steps.end())
      return found->second;
    const Vector result = compute(e, s, is_of_row ? nullptr : lane);
    known.steps.insert_or_assign({e, s}, result);
    return result;
  }

  Vector compute(std::size_t e, int s, Lane* lane) {
    const ScalarStep& step = expression(e).step(s);
    if (step.op == ScalarOp::input) {
      const std::size_t p = nest_of(e).inputs[static_cast<std::size_t>(step.which)];
      Known& known = lane ? lane->known : of_row_;
      const auto found = known.places.find(p);
      if (found != known.places.end()) return found->second;
      const auto written = written_of_row_.find(p);
      if (!lane && written != written_of_row_.end()) return written->second;
      const Schedule::Place& place = part_.places[p];
      const Vector result = !lane ? code_.load_one(address(p), place.dtype)
                            : ask_equal(place.step, 2)
                                ? code_.load_every_other(at(p, *lane), lane->tail)
                                : code_.load(at(p, *lane), place.dtype, lane->tail);
      known.places.insert_or_assign(p, result);
      return result;
    }
    if (step.op == ScalarOp::index) return index(static_cast<std::size_t>(step.which), lane);
    if (step.op == ScalarOp::size) {
      const std::vector<Size> sizes = RowCode::sizes_of(part_);
      const auto is_it = [&](Size size) { return always_equal(size, step.size); };
      const auto found = std::find_if(sizes.begin(), sizes.end(), is_it);
      const auto place = static_cast<std::int32_t>(found - sizes.begin());
      return code_.load_one(code_.address({.base = sizes_, .displacement = 8 * place}), DType::f64);
    }
    if (step.op == ScalarOp::add || step.op == ScalarOp::sub) {
      if (const auto product = single_product(e, step.args[0], lane))
        return multiply_add(e, *product, step.args[1], false, step.op == ScalarOp::sub, lane);
      if (const auto product = single_product(e, step.args[1], lane))
        return multiply_add(e, *product, step.args[0], step.op == ScalarOp::sub, false, lane);
    }
    if (step.op == ScalarOp::where) {
      const ScalarStep& condition = expression(e).step(step.args[0]);
      if (is_comparison(condition.op)) {
        const Vector x = value(e, condition.args[0], lane), y = value(e, condition.args[1], lane);
        const Vector yes = value(e, step.args[1], lane), no = value(e, step.args[2], lane);
        return code_.select(code_.compare(condition.op, x, y), yes, no);
      }
    }
    Vector args[3];
    std::array<std::uint32_t, 5> key{static_cast<std::uint32_t>(step.op), step.short_form, 0, 0, 0};
    for (int i = 0; i < info(step.op).arity; ++i) {
      args[i] = value(e, step.args[i], lane);
      key[static_cast<std::size_t>(i) + 2] = args[i].id();
    }
    // Nests that share a loop often have the same in common.
    Known& known = lane ? lane->known : of_row_;
    if (const auto found = known.results.find(key); found != known.results.end())
      return found->second;
    return known.results[key] =
               emit_operation(code_, step.op, step.short_form, args[0], args[1], args[2]);
  }

  /// A product that only one step reads, which may then take its factors: it is rounded once less.
  std::optional<ScalarStep> single_product(std::size_t e, int s, const Lane* lane) {
    const ScalarStep& step = expression(e).step(s);
    const bool is_single =
        step.op == ScalarOp::mul && expression(e).uses[static_cast<std::size_t>(s)] == 1;
    return is_single && varies(e, s) == (lane != nullptr) ? std::optional(step) : std::nullopt;
  }
  Vector multiply_add(std::size_t e, const ScalarStep& product, int other, bool minus_product,
                      bool minus_other, Lane* lane) {
    const Vector x = value(e, product.args[0], lane), y = value(e, product.args[1], lane),
                 z = value(e, other, lane);
    return code_.multiply_add(x, y, z, minus_product, minus_other);
  }

  /// Computes all that does not vary along the row before the loop.
  void emit_of_row(std::size_t e) {
    const Expression& expr = expression(e);
    for (int s = 0; s < static_cast<int>(expr.steps.size()); ++s) {
      const ScalarStep& step = expr.step(s);
      if (expr.uses[static_cast<std::size_t>(s)] == 0 || step.op == ScalarOp::constant ||
          varies(e, s))
        continue;
      const bool is_read =
          std::any_of(expr.steps.begin(), expr.steps.end(), [&](const ScalarStep& other) {
            const auto o = static_cast<int>(&other - expr.steps.data());
            return expr.uses[static_cast<std::size_t>(o)] > 0 && varies(e, o) &&
                   std::find(other.args, other.args + info(other.op).arity, s) !=
                       other.args + info(other.op).arity;
          });
      if (is_read || s == expr.value) value(e, s, nullptr);
    }
  }

  void begin_stage() {
    of_row_ = {};
    addresses_.clear();
  }

  void emit_scalars(const Stage& stage) {
    begin_stage();
    for (std::size_t n : stage.nests) store_one(n, value(n, bodies_[n].value, nullptr));
  }

  /// Stores a value of the row as a whole.
  void store_one(std::size_t n, const Vector& value) {
    const std::size_t p = part_.rows.nests[n].output;
    written_of_row_.insert_or_assign(p, code_.store_one(address(p), part_.places[p].dtype, value));
  }

  bool combines(const Stage& stage) const {
    return std::any_of(stage.nests.begin(), stage.nests.end(),
                       [&](std::size_t n) { return part_.rows.nests[n].combine.has_value(); });
  }
  bool is_of_many_instructions(const Stage& stage) {
    return std::any_of(stage.nests.begin(), stage.nests.end(), [&](std::size_t n) {
      const Expression& expr = bodies_[n];
      for (int s = 0; s < static_cast<int>(expr.steps.size()); ++s) {
        if (host::is_of_many_instructions(expr.step(s).op) && varies(n, s)) return true;
      }
      return false;
    });
  }

  /// The next vectors of the row: `most`, or where nothing is combined as many as fit. Returns how
  /// many.
  int emit_vectors(const Stage& stage, int most, Sums& sums, const std::vector<Ahead>& ahead,
                   const std::vector<Int>& ahead_at) {
    std::vector<asmjit::BaseNode*> before;
    const auto emit_one = [&] {
      Lane lane{.unrolled = static_cast<int>(before.size())};
      before.push_back(code_.compiler().cursor());
      for (std::size_t a = 0; a < ahead.size(); ++a)
        code_.prefetch(at(ahead_at[a], ahead[a].place, lane, 0));
      emit_nests(stage, lane, sums);
    };
    emit_one();
    const bool is_long = most > 1 && is_of_many_instructions(stage);
    const int together = is_long ? code_.how_many_fit(before[0], most) : 1;
    const int count = combines(stage) ? most : together;
    while (std::ssize(before) < count) emit_one();
    if (together > 1) code_.interleave(before, together);
    code_.add(i_, count * lanes_);
    return count;
  }

  void emit_loop(const Stage& stage, const std::vector<Ahead>& ahead) {
    begin_stage();
    const int most = combines(stage) ? sums_side_by_side : vectors_interleaved;
    std::vector<std::size_t> combining;
    for (std::size_t n : stage.nests) {
      emit_of_row(n);
      if (part_.rows.nests[n].combine) combining.push_back(n);
      for (std::size_t p : part_.rows.nests[n].inputs) address(p);
      address(part_.rows.nests[n].output);
    }
    std::vector<Int> ahead_at;  // where what is ahead begins
    for (const Ahead& next : ahead) {
      ahead_at.push_back(address(next.place));
      if (!next.is_next_row) continue;
      ahead_at.back() =
          code_.address({.base = address(next.place), .index = bytes_of_rows(next.place, 1)});
    }
    const bool in_runs = !combining.empty() && has_runs(part_, lanes_);
    // Sums of each vector worked on side by side; and of the runs of a block so far, of the blocks
    // of a larger one, and of these.
    Sums sums;
    std::array<std::map<std::size_t, Vector>, levels_of_sums> totals;
    found_nan_.clear();
    for (std::size_t n : combining) {
      if (is_extreme(n)) {
        found_nan_[n] = code_.none();
      }
      for (int u = 0; u < most; ++u) sums[n].push_back(start(n));
      if (!in_runs) continue;
      for (auto& of_level : totals) of_level[n] = start(n);
    }
    i_ = zero();
    const Int whole = code_.new_int();  // the elements of whole vectors, as many as are worked on
    const asmjit::Label body = code_.new_label(), rest = code_.new_label(), end = code_.new_label();
    if (const auto skipped = skipped_of(stage)) code_.jump_if_none(*skipped, end);
    asmjit::BaseNode* const before_loop = code_.compiler().cursor();
    std::array<asmjit::Label, levels_of_sums> next;
    std::array<Int, levels_of_sums> ends;
    if (in_runs) {
      std::int64_t elements = elements_in_run(lanes_);
      std::array<std::int64_t, levels_of_sums> of_level;
      for (std::size_t level = 0; level < levels_of_sums; ++level, elements *= runs_in_block) {
        next[level] = code_.new_label();
        ends[level] = code_.new_int();
        of_level[level] = elements;
      }
      for (std::size_t level = levels_of_sums; level-- > 0;) {
        code_.bind(next[level]);
        begin_run(ends[level], i_, of_level[level],
                  level + 1 < levels_of_sums ? ends[level + 1] : whole);
      }
    }
    code_.bind(body);
    const int count = emit_vectors(stage, most, sums, ahead, ahead_at);
    code_.jump_if_less(i_, in_runs ? ends[0] : whole, body);
    if (in_runs) {
      for (std::size_t n : combining) {
        for (std::size_t u = 1; u < sums[n].size(); ++u) add_up(n, sums[n][0], sums[n][u]);
        add_up(n, totals[0][n], sums[n][0]);
      }
      for (std::size_t level = 1; level < levels_of_sums; ++level) {
        code_.jump_if_less(i_, ends[level], next[level - 1]);
        for (std::size_t n : combining) add_up(n, totals[level][n], totals[level - 1][n]);
      }
      code_.jump_if_less(i_, whole, next.back());
    }
    code_.bind(rest);
    const auto skip_if_none_is_whole = [&](int vectors, const asmjit::Label& to) {
      code_.set(whole, length_);
      code_.round_down(whole, static_cast<std::uint32_t>(
                                  std::countr_zero(static_cast<unsigned>(vectors * lanes_))));
      code_.jump_if_not_less(i_, whole, to);
    };
    code_.emit_behind(before_loop, [&] { skip_if_none_is_whole(count, rest); });
    if (count > 1 && combining.empty()) {
      const asmjit::Label single = code_.new_label(), last = code_.new_label();
      skip_if_none_is_whole(1, last);
      code_.bind(single);
      emit_vectors(stage, 1, sums, ahead, ahead_at);
      code_.jump_if_less(i_, whole, single);
      code_.bind(last);
    }
    code_.jump_if_not_less(i_, length_, end);
    const asmjit::Label rest_body = code_.new_label();
    code_.bind(rest_body);
    const Int left = code_.new_int();
    code_.set(left, length_);
    code_.subtract(left, i_);
    const Tail tail = code_.tail(left);
    Lane lane{.tail = &tail};
    emit_nests(stage, lane, sums);
    code_.add(i_, lanes_);
    code_.jump_if_less(i_, length_, rest_body);
    code_.bind(end);
    for (std::size_t n : combining) {
      const Combine how = *part_.rows.nests[n].combine;
      const Vector all = sums[n][0];
      for (std::size_t u = 1; u < sums[n].size(); ++u) code_.combine(how, all, sums[n][u], nullptr);
      if (in_runs) code_.combine(how, all, totals.back()[n], nullptr);
      code_.combine_lanes(how, all);
      if (is_extreme(n)) put_nan(all, found_nan_[n]);
      store_one(n, epilogues_[n] ? epilogue(n, all) : all);
    }
  }

  /// Of a stage of sums that are 0 where values of the row are some numbers: whether one is not.
  std::optional<Mask> skipped_of(const Stage& stage) {
    std::optional<Mask> result;
    for (std::size_t n : stage.nests) {
      const Schedule::RowNest& nest = part_.rows.nests[n];
      const auto skipped = skipped_sum(nest.body, nest.combine);
      if (!skipped || !ask_equal(part_.places[nest.inputs[skipped->input]].step, 0))
        return std::nullopt;
      const Mask is_needed =
          code_.compare(ScalarOp::ne, row_input(n, skipped->input), code_.constant(skipped->value));
      result = result ? code_.either(*result, is_needed) : is_needed;
    }
    return result;
  }
  /// The value of the row that nest n reads as input i.
  Vector row_input(std::size_t n, std::size_t i) {
    const Expression& expr = bodies_[n];
    for (int s = 0; s < static_cast<int>(expr.steps.size()); ++s) {
      if (expr.step(s).op == ScalarOp::input && expr.step(s).which == static_cast<int>(i))
        return value(n, s, nullptr);
    }
    throw std::logic_error("row code: a nest without an input that it reads");
  }

  bool is_extreme(std::size_t n) const {
    const std::optional<Combine>& how = part_.rows.nests[n].combine;
    return how && info(*how).selects;
  }
  Vector start(std::size_t n) {
    return code_.copy(code_.constant(identity<double>(*part_.rows.nests[n].combine)));
  }
  /// to = to combined with x, which begins anew.
  void add_up(std::size_t n, const Vector& to, const Vector& x) {
    const Combine how = *part_.rows.nests[n].combine;
    code_.combine(how, to, x, nullptr);
    code_.set(x, code_.constant(identity<double>(how)));
  }
  /// NaN where one was found.
  void put_nan(const Vector& all, const Mask& found) {
    const asmjit::Label none = code_.new_label();
    code_.jump_if_none(found, none);
    code_.set(all, code_.constant(std::numeric_limits<double>::quiet_NaN()));
    code_.bind(none);
  }

  /// Of a combined value, input 0 of the epilogue; the others are values of the row, or, where rows
  /// are combined, at `lane`.
  Vector epilogue(std::size_t n, const Vector& combined, Lane* lane = nullptr) {
    const std::size_t e = bodies_.size() + n;
    const Expression& expr = expression(e);
    for (int s = 0; s < static_cast<int>(expr.steps.size()); ++s) {
      if (expr.step(s).op == ScalarOp::input && expr.step(s).which == 0)
        (lane ? lane->known : of_row_).steps.insert_or_assign({e, s}, combined);
    }
    return value(e, expr.value, lane);
  }

  void combine_into(std::size_t n, const Vector& sum, Lane& lane) {
    const Combine how = *part_.rows.nests[n].combine;
    const Expression& expr = bodies_[n];
    if (const auto product =
            how == Combine::sum ? single_product(n, expr.value, &lane) : std::nullopt) {
      const Vector x = value(n, product->args[0], &lane), y = value(n, product->args[1], &lane);
      code_.add_product(sum, x, y, lane.tail);
      return;
    }
    const Vector x = value(n, expr.value, &lane);
    merge(n, sum, x, lane.tail);
    if (is_extreme(n) && part_.rows.nests[n].over == Schedule::Over::row)
      code_.note(found_nan_[n], code_.is_nan(x, x), lane.tail);
  }

  /// acc = acc combined with x. Of rows NaN stays in its lane; along a row it is noted instead.
  void merge(std::size_t n, const Vector& acc, const Vector& x, const Tail* tail) {
    const Schedule::RowNest& nest = part_.rows.nests[n];
    if (is_extreme(n) && nest.over == Schedule::Over::rows)
      code_.set(acc, emit_operation(code_, info(*nest.combine).operation, false, acc, x, acc));
    else
      code_.combine(*nest.combine, acc, x, tail);
  }

  void emit_nests(const Stage& stage, Lane& lane, Sums& sums) {
    for (std::size_t n : stage.nests) {
      const Schedule::RowNest& nest = part_.rows.nests[n];
      const Expression& expr = bodies_[n];
      if (nest.combine) {
        combine_into(n, sums[n][static_cast<std::size_t>(lane.unrolled)], lane);
        continue;
      }
      const Vector result = value(n, expr.value, &lane);
      const Schedule::Place& place = part_.places[nest.output];
      if (place.streams && !lane.tail) {
        code_.stream(at(nest.output, lane), result);
        lane.known.places.insert_or_assign(nest.output, result);
      } else if (place.is_kept || is_read_later(stage, n) || place.dtype != code_.compute()) {
        const bool is_read_again = is_read_in(stage, n);
        const Vector again =
            code_.store(at(nest.output, lane), place.dtype, result, lane.tail, is_read_again);
        if (is_read_again) lane.known.places.insert_or_assign(nest.output, again);
      } else {
        lane.known.places.insert_or_assign(nest.output, result);
      }
    }
  }

  /// Whether every NaN that is rounded to bf16 comes from arithmetic on numbers of bf16, and not
  /// from elsewhere or a constant. It is quiet then, and its lower half 0: operations keep the
  /// upper bits of a NaN that they are given, and make one whose lower bits are 0.
  bool has_bf16_nans() const {
    if (part_.rows.compute != DType::f32) return false;
    std::set<std::size_t> written;
    const auto has_them = [&](std::size_t p) {
      const DType dtype = part_.places[p].dtype;
      return dtype == DType::bf16 || !is_floating(dtype) || written.contains(p);
    };
    for (const Schedule::RowNest& nest : part_.rows.nests) {
      if (!std::all_of(nest.inputs.begin(), nest.inputs.end(), has_them)) return false;
      const bool is_narrow = part_.places[nest.output].dtype == DType::bf16;
      for (const ScalarExpr* expr : {&nest.body, &nest.epilogue}) {
        for (const ScalarStep& step : expr->steps) {
          if (step.op == ScalarOp::constant && std::isnan(step.real)) return false;
          if (step.op == ScalarOp::as_bf16 &&
              !makes_quiet(expr->steps[static_cast<std::size_t>(step.args[0])]))
            return false;
        }
      }
      const ScalarExpr& last = nest.epilogue.steps.empty() ? nest.body : nest.epilogue;
      if (is_narrow && !makes_quiet(last.steps.back())) return false;
      written.insert(nest.output);
    }
    return true;
  }
  /// Whether a NaN that it gives is quiet; others may give one that they are given.
  static bool makes_quiet(const ScalarStep& step) {
    switch (step.op) {
      case ScalarOp::add:
      case ScalarOp::sub:
      case ScalarOp::mul:
      case ScalarOp::div:
      case ScalarOp::sqrt:
      case ScalarOp::rsqrt:
      case ScalarOp::floor:
      case ScalarOp::ceil:
      case ScalarOp::round:
      case ScalarOp::trunc:
        return true;
      case ScalarOp::log:  // gives what it is given
        return false;
      default:
        return host::is_of_many_instructions(step.op);
    }
  }

  /// Whether a nest of the stage reads what nest n writes.
  bool is_read_in(const Stage& stage, std::size_t n) const {
    return std::any_of(stage.nests.begin(), stage.nests.end(), [&](std::size_t m) {
      return reads(part_.rows.nests[m], part_.rows.nests[n].output);
    });
  }
  /// Whether a nest of another stage reads what nest n writes.
  bool is_read_later(const Stage& stage, std::size_t n) const {
    for (std::size_t m = 0; m < part_.rows.nests.size(); ++m) {
      if (std::find(stage.nests.begin(), stage.nests.end(), m) != stage.nests.end()) continue;
      if (reads(part_.rows.nests[m], part_.rows.nests[n].output)) return true;
    }
    return false;
  }

  const Schedule::Part& part_;
  bool combines_rows_, combines_together_, knows_numbers_;
  Assembler& code_;
  int lanes_;
  std::vector<Expression> bodies_;
  std::vector<std::optional<Expression>> epilogues_;
  std::map<std::pair<std::size_t, int>, bool> varies_;
  Int places_, length_, rows_, index_, sizes_, row_, i_;
  std::vector<Int> bytes_to_next_row_;            // of each place, where the code reads them
  Known of_row_;                                  // as it is before a loop along the row
  std::map<std::size_t, Vector> written_of_row_;  // values of the row as a whole, by place
  std::map<std::size_t, Int> addresses_;
  std::map<std::size_t, Mask>
      found_nan_;  // among the values of which a nest takes the largest or smallest
};

bool has_code_for(const ScalarExpr& expr, DType compute) {
  return std::all_of(expr.steps.begin(), expr.steps.end(),
                     [&](const ScalarStep& step) { return has_vector_code(step.op, compute); });
}

bool is_supported(const Schedule::Part& part, Isa isa) {
  const DType compute = part.rows.compute;
  for (const Schedule::RowNest& nest : part.rows.nests) {
    if (!has_code_for(nest.body, compute) || !has_code_for(nest.epilogue, compute)) return false;
    const Schedule::Place& output = part.places[nest.output];
    if (!can_store(output.dtype, compute) ||
        (!nest.combine && !nest.is_scalar && !ask_equal(output.step, 1)))
      return false;
    for (std::size_t p : nest.inputs) {
      if (!can_read(part.places[p].dtype, part.places[p].step, compute)) return false;
    }
    if (!nest.combine) continue;
    if (!can_combine(*nest.combine) ||
        part.rows.length.size > RowCode::target(isa).longest_combined_row)
      return false;
    if (nest.over == Schedule::Over::rows &&
        (!RowCode::combines_rows(part, isa) || skipped_sum(nest.body, nest.combine)))
      return false;  // of sums that may be skipped strips have less to do
  }
  return true;
}

using Words = std::vector<std::int64_t>;

/// All of a part that its code depends on.
Words words_of(const Schedule::Part& part, Isa isa) {
  Words words{static_cast<std::int64_t>(isa), static_cast<std::int64_t>(part.rows.compute),
              FloatMode::of_this_thread().word()};  // which rounds the numbers of the code
  const auto add = [&](auto... values) {
    (words.push_back(static_cast<std::int64_t>(values)), ...);
  };
  const auto add_expression = [&](const ScalarExpr& expr) { for_each_word(expr, AppendTo(words)); };
  const bool knows = knows_numbers(part, isa);
  for (const Schedule::Place& place : part.places)
    add(place.dtype, knows ? place.row_step.word() : !always_equal(place.row_step, 0),
        place.step.word(), place.is_kept, place.streams);
  bool combines = false;
  for (const Schedule::RowNest& nest : part.rows.nests) {
    add(nest.inputs.size());
    for (const std::size_t input : nest.inputs) add(input);
    add(nest.output, nest.combine ? static_cast<int>(*nest.combine) : -1, nest.over,
        nest.is_scalar);
    add_expression(nest.body);
    add_expression(nest.epilogue);
    combines |= nest.combine.has_value();
  }
  for (const Schedule::Rows::Axis& axis : part.rows.axes) add(axis.is_row, axis.is_along);
  add(knows ? part.rows.length.size.word()
            : combines && has_runs(part, lanes_of(isa, part.rows.compute)),
      knows);
  return words;
}

struct Runtime {
  std::mutex mutex;
  CodeMemory memory;
  std::map<Words, std::weak_ptr<const RowCode>> codes;
  std::size_t alive = 64;  // of `codes`, when that was last counted, or a few

  /// Parent and child would both write code to it.
  void before_fork() { memory.close(); }
  void forget_dead() {
    std::erase_if(codes, [](const auto& code) { return code.second.expired(); });
    alive = std::max<std::size_t>(64, codes.size());
  }
};
void or_throw(asmjit::Error error) {
  if (error != asmjit::kErrorOk) throw AssemblerError{error};
}

Runtime& runtime() { return made_once_with_lock<Runtime, StaticLock::machine_code>(); }

asmjit::Environment environment_of_code() {
  asmjit::Environment environment = asmjit::Environment::host();
  environment.setObjectFormat(asmjit::ObjectFormat::kJIT);
  return environment;
}

}  // namespace

std::string_view RowCode::missing(Isa isa) {
  return Assembler::has(isa) ? "" : "no machine code is made for these instructions";
}

namespace {

Target make_target(Isa isa) {
  Target target = RowCode::target_without_code();
  target.has = has_vector_code;
  target.combines = can_combine;
  target.reads = can_read;
  target.writes = can_store;
  target.combines_together = can_combine_together;
  target.register_bytes = Assembler::vector_bytes(isa);
  target.folded_registers = Assembler::registers(isa) / 4;
  return target;
}

}  // namespace

const Target& RowCode::target(Isa isa) {
  if (!Assembler::has(isa)) return target_without_code();
  switch (isa) {
    case Isa::neon:
      return made_once([] { return make_target(Isa::neon); });
    case Isa::v3:
      return made_once([] { return make_target(Isa::v3); });
    default:
      return made_once([] { return make_target(Isa::v4); });
  }
}

bool RowCode::combines_rows(const Schedule::Part& part, Isa isa) {
  const Schedule::Rows& rows = part.rows;
  if (rows.length.loop >= 0 || !rows.length.size.is_number() ||
      static_cast<std::int64_t>(rows.nests.size()) *
              vectors_of(rows.length.size, lanes_of(isa, rows.compute)) >
          target(isa).folded_registers)
    return false;
  return std::all_of(rows.nests.begin(), rows.nests.end(), [&](const Schedule::RowNest& nest) {
    const bool is_read = std::any_of(rows.nests.begin(), rows.nests.end(), [&](const auto& other) {
      return std::find(other.inputs.begin(), other.inputs.end(), nest.output) != other.inputs.end();
    });
    return nest.combine && nest.over == Schedule::Over::rows && !is_read;
  });
}

std::shared_ptr<const RowCode> RowCode::compile(const Schedule::Part& part, Isa isa) {
  if (!missing(isa).empty() || !is_supported(part, isa)) return nullptr;
  Words key = words_of(part, isa);
  {
    const std::lock_guard lock(runtime().mutex);
    if (const auto known = runtime().codes.find(key); known != runtime().codes.end()) {
      if (auto code = known->second.lock()) return code;
    }
  }
  const std::shared_ptr<RowCode> made(new RowCode);
  const ErrorThrower errors;
  try {
    asmjit::CodeHolder holder;
    or_throw(holder.init(environment_of_code()));
    errors.watch(holder);
    const std::unique_ptr<Assembler> code = Assembler::make(isa, part.rows.compute, holder);
    Emitter(part, isa, *code).emit();
    or_throw(code->compiler().finalize());
    const std::lock_guard lock(runtime().mutex);
    made->code_ = runtime().memory.add(holder);
    made->kept_.add(sizeof(RowCode) + holder.codeSize() + heap_bytes(key));
    runtime().codes.insert_or_assign(std::move(key), made);
    if (runtime().codes.size() > 2 * runtime().alive) runtime().forget_dead();
  } catch (const AssemblerError&) {
    return nullptr;
  }
  return made;
}

}  // namespace ein::host

#else

namespace ein::host {

std::string_view RowCode::missing(Isa) { return "ein was built without asmjit"; }
const Target& RowCode::target(Isa) { return target_without_code(); }
bool RowCode::combines_rows(const Schedule::Part&, Isa) { return false; }
std::shared_ptr<const RowCode> RowCode::compile(const Schedule::Part&, Isa) { return nullptr; }

}  // namespace ein::host

#endif
