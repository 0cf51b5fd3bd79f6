#include "oracle/execute.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "oracle/interpret.hpp"

namespace ein {
namespace {

using Reference = Interpreter<double>;
using Point = Reference::Point;

/// What of one step's units touched each element of the buffers.
class Memory {
 public:
  explicit Memory(DoubleBuffers& buffers) : buffers_(buffers) {}

  /// Also has scratch, whose elements must be written first, and knows units.
  Memory(DoubleBuffers& buffers, const Schedule& schedule)
      : buffers_(buffers), first_scratch_(schedule.buffers) {
    for (const Schedule::Scratch& scratch : schedule.scratch) {
      scratch_.emplace_back(static_cast<std::size_t>(scratch.elements), 0.0);
      written_.emplace_back(scratch_.back().size(), 0);
    }
  }

  void begin_step() {
    if (first_scratch_ == none) return;
    touched_.clear();
    for (std::size_t b = 0; b < first_scratch_; ++b) touched_.emplace_back(buffers_.at(b).size());
    for (const auto& scratch : scratch_) touched_.emplace_back(scratch.size());
  }
  void begin_unit(const Schedule& schedule, int unit) {
    unit_ = unit;
    for (std::size_t s = 0; s < schedule.scratch.size(); ++s) {
      if (!schedule.scratch[s].of_thread) continue;
      std::fill(written_[s].begin(), written_[s].end(), 0);
      std::fill(touched_[first_scratch_ + s].begin(), touched_[first_scratch_ + s].end(), Touch{});
    }
  }

  double read(int number, std::int64_t element) {
    const auto [b, e] = at(number, element);
    if (b >= first_scratch_ && !written_[b - first_scratch_][e])
      fail("reads scratch that nothing was written to", b, e);
    if (!touched_.empty()) {
      Touch& touch = touched_[b][e];
      if (touch.writer >= 0 && touch.writer != unit_)
        fail("a unit reads what another writes", b, e);
      touch.reader = touch.reader < 0 || touch.reader == unit_ ? unit_ : several;
    }
    return buffer(b)[e];
  }
  void write(int number, std::int64_t element, double value) {
    const auto [b, e] = at(number, element);
    if (b >= first_scratch_) written_[b - first_scratch_][e] = 1;
    if (!touched_.empty()) {
      Touch& touch = touched_[b][e];
      if (touch.writer >= 0 && touch.writer != unit_)
        fail("two units write the same element", b, e);
      if (touch.reader >= 0 && touch.reader != unit_)
        fail("a unit writes what another reads", b, e);
      touch.writer = unit_;
    }
    buffer(b)[e] = value;
  }
  std::int64_t size(int number) {
    return static_cast<std::int64_t>(buffer(static_cast<std::size_t>(number)).size());
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr int several = 1 << 30;
  struct Touch {
    int writer = -1, reader = -1;  // units
  };

  std::vector<double>& buffer(std::size_t b) {
    return b < first_scratch_ ? buffers_.at(b) : scratch_.at(b - first_scratch_);
  }

  std::pair<std::size_t, std::size_t> at(int number, std::int64_t element) {
    const auto b = static_cast<std::size_t>(number);
    if (element < 0 || static_cast<std::size_t>(element) >= buffer(b).size())
      throw std::logic_error("execute: element " + std::to_string(element) + " of b" +
                             std::to_string(number) + " is outside");
    return {b, static_cast<std::size_t>(element)};
  }
  [[noreturn]] static void fail(const char* what, std::size_t buffer, std::size_t element) {
    throw std::logic_error("execute: " + std::string(what) + ": b" + std::to_string(buffer) + "[" +
                           std::to_string(element) + "]");
  }

  DoubleBuffers& buffers_;
  DoubleBuffers scratch_;
  std::size_t first_scratch_ = none;
  std::vector<std::vector<char>> written_;   // of scratch
  std::vector<std::vector<Touch>> touched_;  // empty outside of schedules
  int unit_ = 0;
};

/// Where a nest's operands begin: buffer and element of each, the output last.
struct Begin {
  int buffer;
  std::int64_t element;
};

/// A nest's loops, one element after the other.
class NestRun {
 public:
  /// Of a piece of a nest that begins at the point `first`; its first result is `position` elements
  /// behind the nest's.
  NestRun(const LoopNest& nest, std::vector<Begin> begin, Memory& memory, RandomOrigin random,
          Point first = {}, std::int64_t position = 0)
      : nest_(nest),
        begin_(std::move(begin)),
        memory_(memory),
        random_(random),
        at_(nest.axes.size(), 0),
        first_(std::move(first)),
        position_(position) {
    first_.resize(at_.size(), 0);
  }

  void run() {
    for (std::size_t a = 0; a < nest_.axes.size(); ++a) {
      const LoopNest::NestAxis& axis = nest_.axes[a];
      (axis.reduced ? reduced_ : axis.ordered ? ordered_ : kept_).push_back(a);
    }
    if (nest_.is_scatter() && nest_.combine) return scatter();
    if (nest_.along == LoopNest::Along::scan) return scan();
    if (nest_.along == LoopNest::Along::argsort) return argsort();
    if (nest_.is_matrix()) return matrix();
    each(kept_, [&] { store(finish(combine_reduced())); });
  }

 private:
  template <class F>
  void each(const std::vector<std::size_t>& axes, const F& f, std::size_t from = 0) {
    if (from == axes.size()) return f();
    for (at_[axes[from]] = 0; at_[axes[from]] < nest_.axes[axes[from]].size; ++at_[axes[from]])
      each(axes, f, from + 1);
    at_[axes[from]] = 0;
  }

  std::int64_t element(std::size_t o) {
    const LoopNest::Operand& of = nest_.operand(o);
    std::int64_t element = begin_[o].element;
    for (std::size_t a = 0; a < at_.size(); ++a) element += of.strides[a] * at_[a];
    if (of.is_indirect()) {
      const auto position =
          static_cast<std::int64_t>(input(static_cast<std::size_t>(of.indirection.positions)));
      if (position < 0 || position >= of.indirection.count())
        throw Error(ErrorKind::value, "execute: position " + std::to_string(position));
      element += position * of.indirection.stride;
    }
    return element;
  }
  double input(std::size_t i) { return memory_.read(begin_[i].buffer, element(i)); }

  /// Inputs of an expression: those that it reads.
  std::vector<double> inputs(const ScalarExpr& expr, std::optional<double> combined) {
    std::vector<double> values(std::max<std::size_t>(1, nest_.inputs.size()), 0.0);
    for (const ScalarStep& step : expr.steps) {
      if (step.op != ScalarOp::input) continue;
      const auto i = static_cast<std::size_t>(step.which);
      values[i] = combined && i == 0 ? *combined : input(i);
    }
    return values;
  }
  double evaluate(const ScalarExpr& expr, std::optional<double> combined = {}) {
    std::int64_t position = position_;
    Point index = first_;
    for (std::size_t a = 0; a < at_.size(); ++a) {
      position += nest_.output.strides[a] * at_[a];
      index[a] += at_[a];
    }
    return Reference::evaluate(expr, nest_.compute, inputs(expr, combined), index,
                               static_cast<std::size_t>(position), random_);
  }

  double combine_reduced() {
    if (!nest_.combine) return evaluate(nest_.body);
    std::optional<double> result;
    each(reduced_, [&] {
      const double value = Reference::taken(*nest_.combine, evaluate(nest_.body));
      result = result ? Reference::combined(*nest_.combine, *result, value) : value;
    });
    return result.value_or(Reference::identity(*nest_.combine));
  }
  double finish(double value) {
    return nest_.epilogue.steps.empty() ? value : evaluate(nest_.epilogue, value);
  }
  void store(double value) {
    const std::size_t o = nest_.inputs.size();
    memory_.write(begin_[o].buffer, element(o), Reference::stored(nest_.output.dtype, value));
  }

  void scatter() {
    const std::size_t o = nest_.inputs.size();
    const double nothing = Reference::nothing(*nest_.combine, nest_.output.dtype);
    for (std::int64_t e = 0; e < memory_.size(begin_[o].buffer); ++e)
      memory_.write(begin_[o].buffer, e, nothing);
    each(kept_, [&] {
      each(reduced_, [&] {
        const std::int64_t to = element(o);
        memory_.write(begin_[o].buffer, to,
                      Reference::combined(*nest_.combine, memory_.read(begin_[o].buffer, to),
                                          evaluate(nest_.body)));
      });
    });
  }

  std::size_t along() const { return ordered_.at(0); }
  void scan() {
    const std::int64_t size = nest_.axes[along()].size;
    each(kept_, [&] {
      std::optional<double> sum;
      for (std::int64_t i = 0; i < size; ++i) {
        at_[along()] = nest_.reverse ? size - 1 - i : i;
        const double value = evaluate(nest_.body);
        if (sum && nest_.inputs.size() == 2) sum = *sum * evaluate(Ex::input(1));
        sum = sum ? Reference::combined(*nest_.combine, *sum, value) : value;
        store(finish(*sum));
      }
      at_[along()] = 0;
    });
  }
  void argsort() {
    const std::int64_t size = nest_.axes[along()].size;
    each(kept_, [&] {
      std::vector<double> values;
      for (at_[along()] = 0; at_[along()] < size; ++at_[along()])
        values.push_back(evaluate(nest_.body));
      std::vector<std::int64_t> order(values.size());
      std::iota(order.begin(), order.end(), 0);
      const auto is_less = [](double a, double b) { return a == a && (b != b || a < b); };
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        const double x = values[static_cast<std::size_t>(a)],
                     y = values[static_cast<std::size_t>(b)];
        return nest_.reverse ? is_less(y, x) : is_less(x, y);
      });
      for (at_[along()] = 0; at_[along()] < size; ++at_[along()])
        store(static_cast<double>(order[static_cast<std::size_t>(at_[along()])]));
      at_[along()] = 0;
    });
  }

  void matrix() {
    std::vector<std::size_t> batch, right, rows, columns, packed;
    for (std::size_t a = 0; a < nest_.axes.size(); ++a) {
      std::vector<std::size_t>* const by_role[] = {&batch, &rows, &columns, &right, &packed};
      by_role[static_cast<std::size_t>(nest_.axes[a].role)]->push_back(a);
    }
    each(batch, [&] {
      linalg::MatrixSizes sizes{nest_.axes[rows[0]].size, nest_.axes[columns[0]].size, 0};
      std::vector<double> a, b;
      each(rows, [&] { each(columns, [&] { a.push_back(input(0)); }); });
      if (nest_.inputs.size() > 1) {
        each(rows, [&] { each(right, [&] { b.push_back(input(1)); }); });
        each(right, [&] { ++sizes.right; });
      }
      const std::vector<double> values = linalg::reference(nest_.function, sizes, a, b);
      const auto axes_of = [&](MatrixAxis role) {
        return role == MatrixAxis::batch     ? std::vector<std::size_t>()
               : role == MatrixAxis::rows    ? rows
               : role == MatrixAxis::columns ? columns
               : role == MatrixAxis::right   ? right
                                             : packed;
      };
      const auto [outer, inner] = linalg::result_axes(nest_.function);
      std::size_t next = 0;
      each(axes_of(outer), [&] { each(axes_of(inner), [&] { store(values[next++]); }); });
    });
  }

  const LoopNest& nest_;
  std::vector<Begin> begin_;
  Memory& memory_;
  RandomOrigin random_;
  Point at_, first_;
  std::int64_t position_;
  std::vector<std::size_t> kept_, reduced_, ordered_;
};

std::int64_t begin_of(const Schedule::Place& place, const std::vector<std::int64_t>& pieces) {
  std::int64_t element = place.offset;
  for (std::size_t l = 0; l < pieces.size(); ++l) element += pieces[l] * place.strides[l];
  return element;
}

std::int64_t count(const Schedule::Step& step, const Schedule::Extent& extent,
                   const std::vector<std::int64_t>& pieces) {
  if (extent.loop < 0) return extent.size;
  const auto l = static_cast<std::size_t>(extent.loop);
  return extent.size / step.loops[l].block * step.loops[l].count(pieces[l]);
}

/// One run of a part that is a product.
void run_product(const Schedule::Step& step, const Schedule::Part& part,
                 const std::vector<std::int64_t>& pieces, Memory& memory) {
  const auto at = [&](std::size_t p, std::int64_t row, std::int64_t column) {
    const Schedule::Place& place = part.places[p];
    return begin_of(place, pieces) + row * place.row_step + column * place.step;
  };
  const std::int64_t rows = count(step, part.product->rows, pieces),
                     columns = count(step, part.product->columns, pieces),
                     depth = count(step, part.product->depth, pieces);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const int c = part.places[2].buffer;
      double sum = part.product->adds ? memory.read(c, at(2, i, j)) : 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += memory.read(part.places[0].buffer, at(0, i, k)) *
               memory.read(part.places[1].buffer, at(1, k, j));
      memory.write(c, at(2, i, j), sum);
    }
  }
}

/// One run of a part that is a nest left whole, or a piece of it.
void run_whole(const Schedule::Step& step, const Schedule::Part& part,
               const std::vector<std::int64_t>& pieces, Memory& memory, RandomOrigin random) {
  std::vector<Begin> begin;
  for (const Schedule::Place& place : part.places)
    begin.push_back({place.buffer, begin_of(place, pieces)});
  LoopNest nest = *part.whole;
  Point first(nest.axes.size(), 0);
  for (std::size_t a = 0; a < part.loops.size(); ++a) {
    if (part.loops[a] < 0) continue;
    const auto l = static_cast<std::size_t>(part.loops[a]);
    first[a] = nest.axes[a].size * pieces[l];
    nest.axes[a].size = count(step, {nest.axes[a].size, part.loops[a]}, pieces);
  }
  const std::int64_t position = begin.back().element - part.places.back().offset;
  NestRun(nest, std::move(begin), memory, random, std::move(first), position).run();
}

/// One run of a part of rows.
class RowsRun {
 public:
  RowsRun(const Schedule::Step& step, const Schedule::Part& part,
          const std::vector<std::int64_t>& pieces, Memory& memory, RandomOrigin random)
      : step_(step),
        part_(part),
        rows_(part.rows),
        pieces_(pieces),
        memory_(memory),
        random_(random) {}

  void run() {
    const std::int64_t rows = count(rows_.rows), length = count(rows_.length);
    // The rows combined so far, of nests that combine rows.
    std::vector<std::vector<double>> so_far(rows_.nests.size());
    for (std::size_t n = 0; n < so_far.size(); ++n) {
      const Schedule::RowNest& nest = rows_.nests[n];
      if (nest.combine && nest.over == Schedule::Over::rows)
        so_far[n].assign(static_cast<std::size_t>(length), Reference::identity(*nest.combine));
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::size_t n = 0; n < so_far.size(); ++n)
        run(rows_.nests[n], row, rows_.nests[n].is_scalar ? 1 : length, so_far[n]);
    }
    for (std::size_t n = 0; n < so_far.size(); ++n) {
      for (std::size_t e = 0; e < so_far[n].size(); ++e)
        finish(rows_.nests[n], 0, static_cast<std::int64_t>(e), so_far[n][e]);
    }
  }

 private:
  std::int64_t count(const Schedule::Extent& extent) const {
    return ein::count(step_, extent, pieces_);
  }
  std::int64_t element(std::size_t p, std::int64_t row, std::int64_t e) const {
    const Schedule::Place& place = part_.places[p];
    return begin_of(place, pieces_) + row * place.row_step + e * place.step;
  }
  double read(std::size_t p, std::int64_t row, std::int64_t e) {
    return memory_.read(part_.places[p].buffer, element(p, row, e));
  }
  void write(std::size_t p, std::int64_t row, std::int64_t e, double value) {
    memory_.write(part_.places[p].buffer, element(p, row, e),
                  Reference::stored(part_.places[p].dtype, value));
  }

  /// Of a result behind its nest's first, which random numbers follow.
  std::size_t position(const Schedule::RowNest& nest, std::int64_t row, std::int64_t e) const {
    return static_cast<std::size_t>(element(nest.output, row, e) -
                                    part_.places[nest.output].offset);
  }

  double evaluate(const Schedule::RowNest& nest, const ScalarExpr& expr, std::int64_t row,
                  std::int64_t e, std::optional<double> combined = {}) {
    std::vector<double> values(std::max<std::size_t>(1, nest.inputs.size()), 0.0);
    for (const ScalarStep& step : expr.steps) {
      if (step.op != ScalarOp::input) continue;
      const auto i = static_cast<std::size_t>(step.which);
      values[i] = combined && i == 0 ? *combined : read(nest.inputs[i], row, e);
    }
    Point index;
    for (const Schedule::Rows::Axis& axis : rows_.axes) {
      std::int64_t at = axis.loop < 0 ? Size(0)
                                      : step_.loops[static_cast<std::size_t>(axis.loop)].first(
                                            pieces_[static_cast<std::size_t>(axis.loop)]);
      index.push_back(at + (axis.is_row ? row : 0) + (axis.is_along ? e : 0));
    }
    return Reference::evaluate(expr, rows_.compute, values, index, position(nest, row, e), random_);
  }

  void run(const Schedule::RowNest& nest, std::int64_t row, std::int64_t length,
           std::vector<double>& so_far) {
    double result = nest.combine ? Reference::identity(*nest.combine) : 0;
    for (std::int64_t e = 0; e < length; ++e) {
      const double value = evaluate(nest, nest.body, row, e);
      if (!nest.combine) {
        write(nest.output, row, e, value);
        continue;
      }
      double& to = so_far.empty() ? result : so_far[static_cast<std::size_t>(e)];
      to = Reference::combined(*nest.combine, to, Reference::taken(*nest.combine, value));
    }
    if (nest.combine && so_far.empty()) finish(nest, row, 0, result);
  }

  void finish(const Schedule::RowNest& nest, std::int64_t row, std::int64_t e, double combined) {
    write(nest.output, row, e,
          nest.epilogue.steps.empty() ? combined : evaluate(nest, nest.epilogue, row, e, combined));
  }

  const Schedule::Step& step_;
  const Schedule::Part& part_;
  const Schedule::Rows& rows_;
  const std::vector<std::int64_t>& pieces_;
  Memory& memory_;
  RandomOrigin random_;
};

}  // namespace

void execute(const LoopNest& nest, DoubleBuffers& buffers, RandomOrigin random) {
  Memory memory(buffers);
  std::vector<Begin> begin;
  for (const LoopNest::Operand& input : nest.inputs) begin.push_back({input.buffer, input.offset});
  begin.push_back({nest.output.buffer, nest.output.offset});
  NestRun(nest, std::move(begin), memory, random).run();
}

void execute(const Schedule& schedule, DoubleBuffers& buffers, std::uint64_t seed,
             RandomOrigin random) {
  Memory memory(buffers, schedule);
  std::mt19937_64 generator(seed);
  for (const Schedule::Step& step : schedule.steps) {
    memory.begin_step();
    std::vector<std::int64_t> units(static_cast<std::size_t>(step.units()));
    std::iota(units.begin(), units.end(), 0);
    std::shuffle(units.begin(), units.end(), generator);
    for (std::int64_t unit : units) {
      memory.begin_unit(schedule, static_cast<int>(unit));
      std::vector<std::int64_t> pieces(step.loops.size());
      begin_unit(step.loops, unit, pieces);
      const auto run = [&](const Schedule::Part& part) {
        if (part.product) return run_product(step, part, pieces, memory);
        if (!part.whole) return RowsRun(step, part, pieces, memory, random).run();
        run_whole(step, part, pieces, memory, random);
      };
      run_parts(step, pieces, run, 0, step.parts.size());
    }
  }
}

}  // namespace ein
