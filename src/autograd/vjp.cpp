#include "autograd/vjp.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "autograd/derivative.hpp"
#include "autograd/matrix.hpp"
#include "graph/build.hpp"
#include "graph/rewrite.hpp"
#include "size/ask.hpp"

namespace ein::autograd {
namespace {

constexpr ValueId no_cotangent = -1;

std::vector<int> axes_in(const Access& access) {
  std::vector<int> axes;
  for (const DimIndex& dim : access) {
    for (const DimIndex::Term& term : dim.terms) {
      if (std::find(axes.begin(), axes.end(), term.axis) == axes.end()) axes.push_back(term.axis);
    }
  }
  return axes;
}

/// Values at the points of some axes.
using Points = NamedValue;

class Builder {
 public:
  Builder(const Graph& forward, const std::vector<bool>& wanted, const std::vector<bool>& given)
      : graph_{forward.ops, {}},
        cotangents_(forward.ops.size(), no_cotangent),
        sent_(forward.ops.size()),
        matters_(forward.ops.size(), false),
        wanted_(wanted) {
    std::size_t input = 0;
    for (std::size_t id = 0; id < forward.ops.size(); ++id) {
      const Op& op = forward.ops[id];
      if (op.kind == OpKind::input) {
        matters_[id] = wanted[input++] && is_floating(op.dtype);
      } else if (is_floating(op.dtype) && !op.marks.detached && !op.marks.stationary) {
        matters_[id] = std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId i) {
          return matters_[static_cast<std::size_t>(i)];
        });
      }
    }
    for (Op& op : graph_.ops) op.marks.stationary = false;  // second derivatives need its slope
    for (std::size_t o = 0; o < forward.outputs.size(); ++o) {
      if (!given[o]) continue;
      const Op& output = forward.op(forward.outputs[o]);
      seeds_.emplace_back(
          forward.outputs[o],
          add({.kind = OpKind::input, .dtype = output.dtype, .shape = output.shape}));
    }
  }

  Vjp run() {
    const auto count = cotangents_.size();
    for (const auto& [output, seed] : seeds_) accumulate(output, seed);
    for (std::size_t id = count; id-- > 0;) {
      move_kept(static_cast<ValueId>(id));
      if (cotangents_[id] != no_cotangent && graph_.ops[id].kind != OpKind::input)
        pull_back(static_cast<ValueId>(id));
    }
    Vjp result;
    std::size_t input = 0;
    std::vector<ValueId> inputs;
    for (std::size_t id = 0; id < count; ++id) {
      if (graph_.ops[id].kind != OpKind::input) continue;
      inputs.push_back(static_cast<ValueId>(id));
      if (!wanted_[input++]) continue;
      result.reached.push_back(cotangents_[id] != no_cotangent);
      if (cotangents_[id] != no_cotangent) graph_.outputs.push_back(cotangents_[id]);
    }
    // Inputs that nothing reads need not be kept; cotangents always come.
    std::vector<char> live = live_values(graph_);
    for (const auto& [output, seed] : seeds_) live[static_cast<std::size_t>(seed)] = 1;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (live[static_cast<std::size_t>(inputs[i])]) result.needs.push_back(i);
    }
    result.graph = keep_values(graph_, live);
    verify(result.graph);
    return result;
  }

 private:
  /// What readers of a part of a value send back.
  struct Sent {
    Points from;
    std::vector<Axis> axes;
    Access read;

    bool is_like(const Sent& other) const {
      return read == other.read && from.access == other.from.access &&
             std::equal(axes.begin(), axes.end(), other.axes.begin(), other.axes.end(),
                        [](const Axis& a, const Axis& b) { return ask_equal(a.size, b.size); });
    }
  };

  // --- emitting ---

  ValueId add(Op op) { return append(graph_, std::move(op)); }
  /// The same for one of these axes, as the values at their points; it gets those that it uses.
  Points add(Op op, const std::vector<Axis>& axes) {
    const Access at = op.write;
    op.axes = axes;
    drop_unused_axes(op);
    return {add(std::move(op)), at};
  }
  /// One dimension for each axis.
  static Place place_of(const std::vector<Axis>& axes) {
    const Access access = plain_access(axes.size());
    return {access, shape_of(access, axes)};
  }

  /// Moves values to the places `to` of a value of `shape`, zeros elsewhere; every axis of
  /// `from.access` that `to` lacks must have been summed.
  ValueId move(const Points& from, const std::vector<Axis>& axes, const Access& to,
               const Shape& shape) {
    if (from.access == to && ask_equal(graph_.op(from.id).shape, shape)) return from.id;
    if (is_window(to, shape, axes)) return sum_into(from, axes, to, shape);
    return add(move_op(from, axes, {to, shape}, graph_.op(from.id).dtype));
  }

  /// Whether reading so meets an element twice, or leaves the value.
  static bool is_window(const Access& read, const Shape& shape, const std::vector<Axis>& axes) {
    if (is_plain(read, shape, axes)) return false;
    std::vector<Axis> used = axes;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if (!uses(read, static_cast<int>(a))) used[a].size = 1;
    }
    return !stays_inside(read, shape, axes) || !meets_once(read, used);
  }
  /// Adds values up at the places `to`, which may meet or lie outside, zeros elsewhere.
  ValueId sum_into(const Points& from, const std::vector<Axis>& axes, const Access& to,
                   const Shape& shape) {
    return add(op_of(OpKind::reduce, {from}, {to, shape}, graph_.op(from.id).dtype), axes).id;
  }

  /// The adjoint of reading `to` from a value of `shape`, before it is moved there: what every
  /// point read is the sum of their `from`.
  Points pull(Points from, const std::vector<Axis>& axes, const Access& to, const Shape& shape,
              DType dtype) {
    const std::vector<int> kept = axes_in(to);
    const std::vector<int> had = axes_in(from.access);
    const bool sums = std::any_of(had.begin(), had.end(), [&](int a) {
      return std::find(kept.begin(), kept.end(), a) == kept.end();
    });
    if (sums) {
      const bool direct = covers(to, shape, axes);
      std::vector<int> had_and_kept;
      for (int a : kept) {
        if (std::find(had.begin(), had.end(), a) != had.end()) had_and_kept.push_back(a);
      }
      const Access write =
          direct && had_and_kept.size() == kept.size() ? to : plain_access(had_and_kept);
      from = add(op_of(OpKind::reduce, {from}, {write, shape_of(write, axes)}, dtype), axes);
    }
    return from;
  }

  ValueId converted(ValueId value, DType dtype) {
    const Op& from = graph_.op(value);
    if (from.dtype == dtype) return value;
    const DType compute = from.dtype == DType::f64 ? DType::f64 : wide(dtype);
    const Access all = plain_access(from.shape.rank());
    return map(axes_of(from.shape), {{value, all}}, Ex::input(0), compute, dtype).id;
  }

  /// A map over `axes`, one dimension for each.
  Points map(const std::vector<Axis>& axes, const std::vector<Points>& inputs,
             const ScalarExpr& expr, DType compute, DType dtype) {
    return map({axes, place_of(axes)}, inputs, expr, compute, dtype);
  }
  /// Some of the axes of an operation, and values with a dimension for each.
  struct Space {
    const std::vector<Axis>& axes;
    Place place;
  };
  Points map(const Space& at, const std::vector<Points>& inputs, const ScalarExpr& expr,
             DType compute, DType dtype) {
    Op op = op_of(OpKind::map, inputs, at.place, dtype);
    op.expr = expr;
    op.compute = compute;
    return add(std::move(op), at.axes);
  }
  Points reduce(Combine combine, const Op& like, const Points& from, DType dtype) {
    Op op = op_of(OpKind::reduce, {from}, {like.write, like.shape}, dtype);
    op.combine = combine;
    return add(std::move(op), like.axes);
  }

  void accumulate(ValueId to, ValueId cotangent) {
    if (!matters_[static_cast<std::size_t>(to)]) return;
    ValueId& sum = cotangents_[static_cast<std::size_t>(to)];
    if (sum == no_cotangent) {
      sum = cotangent;
      return;
    }
    const Op& op = graph_.op(to);
    const Access all = plain_access(op.shape.rank());
    const DType dtype = op.dtype;
    sum = map(axes_of(op.shape), {{sum, all}, {cotangent, all}}, Ex::input(0) + Ex::input(1),
              wide(dtype), dtype)
              .id;
  }
  static DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

  // --- rules ---

  bool matters(ValueId id) const { return matters_[static_cast<std::size_t>(id)]; }
  /// Gives input `k` of `op` what its readers at the points of `axes` send back.
  void give(const Op& op, std::size_t k, const Points& sent, const std::vector<Axis>& axes) {
    if (!matters(op.inputs[k])) return;
    const Op& input = graph_.op(op.inputs[k]);
    const Shape shape = input.shape;
    const DType dtype = input.dtype;
    const Points from = pull(sent, axes, op.reads[k], shape, dtype);
    if (from.access == op.reads[k] && ask_equal(graph_.op(from.id).shape, shape))
      accumulate(op.inputs[k], converted(from.id, dtype));
    else
      keep_for(op.inputs[k], {from, axes, op.reads[k]});
  }
  /// Adds what readers of the same part of a value send back before it is moved there: maps that
  /// share most of their steps, such as those of the parts of a complex function, become one.
  void keep_for(ValueId to, Sent sent) {
    std::vector<Sent>& all = sent_[static_cast<std::size_t>(to)];
    for (Sent& other : all) {
      const Op& op = graph_.op(sent.from.id);
      if (!other.is_like(sent) || graph_.op(other.from.id).dtype != op.dtype ||
          !covers(sent.from.access, op.shape, sent.axes))  // a map writes each element once
        continue;
      const DType compute = op.kind == OpKind::map ? op.compute : wide(op.dtype), dtype = op.dtype;
      other.from = map({sent.axes, {sent.from.access, op.shape}}, {other.from, sent.from},
                       Ex::input(0) + Ex::input(1), compute, dtype);
      return;
    }
    all.push_back(std::move(sent));
  }
  void move_kept(ValueId to) {
    const Shape shape = graph_.op(to).shape;
    const DType dtype = graph_.op(to).dtype;
    for (const auto& [from, axes, read] : sent_[static_cast<std::size_t>(to)])
      accumulate(to, move({converted(from.id, dtype), from.access}, axes, read, shape));
  }

  void pull_back(ValueId id) {
    const Op op = graph_.op(id);  // a copy: the graph grows
    const Points g{cotangents_[static_cast<std::size_t>(id)], op.write};
    switch (op.kind) {
      case OpKind::input:
        return;
      case OpKind::map:
        return pull_map(op, id, g);
      case OpKind::contract:
        return pull_contract(op, g);
      case OpKind::reduce:
        return pull_reduce(op, id, g);
      case OpKind::place:
        if (op.inputs.size() > 1) pull_base(op, g);
        return give(op, 0, is_at_position(op) ? at_positions(op, g.id) : g, op.axes);
      case OpKind::reindex:
        return give(op, 0, g, op.axes);
      case OpKind::concat:
        return pull_concat(op, g.id);
      case OpKind::gather:
        return pull_gather(op, g);
      case OpKind::scatter:
        return pull_scatter(op, id, g);
      case OpKind::scan:
        return pull_scan(op, id, g);
      case OpKind::argsort:
        return;
      case OpKind::matrix:
        return pull_matrices(op, id, g);
      case OpKind::reshard:
        return pull_reshard(op, g);
      case OpKind::collective:
        break;  // of one process's graph, which is made of derivatives as well
    }
    throw std::logic_error("vjp: an operation without a rule");
  }

  /// Back to where the input lies.
  void pull_reshard(const Op& op, const Points& g) {
    if (!matters(op.inputs[0])) return;
    Op back = op;
    back.dtype = graph_.op(g.id).dtype;
    back.inputs = {g.id};
    std::swap(back.from, back.to);
    accumulate(op.inputs[0], add(std::move(back)));
  }

  /// Of a place, to what lies elsewhere: nothing from where the place writes.
  void pull_base(const Op& op, const Points& g) {
    if (!matters(op.inputs[1])) return;
    const DType dtype = graph_.op(g.id).dtype;
    const Points nothing = zeros(op.axes, dtype), base{g.id, op.write};
    const Place place{op.write, op.shape};
    if (is_at_position(op))
      return accumulate(op.inputs[1], place_at_position(op, nothing, base, place));
    Op written = op_of(OpKind::place, {nothing, base}, place, dtype);
    written.axes = op.axes;
    accumulate(op.inputs[1], add(std::move(written)));
  }

  Points zeros(const std::vector<Axis>& axes, DType dtype) {
    return map(axes, {}, Ex(0.0), wide(dtype), dtype);
  }

  /// Writes `values` to `base` at the position of `op`, a gather of a slice or a place.
  ValueId place_at_position(const Op& op, const Points& values, const Points& base,
                            const Place& place) {
    Op written =
        op_of(OpKind::place, {values, base, positions_of(op)}, place, graph_.op(values.id).dtype);
    written.dim = op.dim;
    written.axes = op.axes;
    return add(std::move(written));
  }

  void pull_map(const Op& op, ValueId result, const Points& g) {
    if (is_integral(op.compute)) return;
    std::vector<int> wanted;
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (matters(op.inputs[k])) wanted.push_back(static_cast<int>(k));
    }
    const auto cotangent = static_cast<int>(op.inputs.size());
    // What was rounded on the way to memory is computed anew.
    const bool is_exact = op.dtype == op.compute;
    const std::vector<ScalarExpr> slopes =
        derivatives(op.expr, wanted, cotangent, is_exact ? cotangent + 1 : -1);
    for (std::size_t w = 0; w < wanted.size(); ++w) {
      if (slopes[w].steps.empty()) continue;
      const auto k = static_cast<std::size_t>(wanted[w]);
      // Random numbers depend on the place in the result, so a map that draws them keeps its shape.
      // Others become one with what reads them where each of their dimensions is an axis.
      Op slope = op;
      slope.expr = slopes[w];
      slope.marks.detached = false;
      slope.inputs.insert(slope.inputs.end(), {g.id, result});
      slope.reads.insert(slope.reads.end(), {op.write, op.write});
      slope.dtype = sums(op, k) ? op.compute : graph_.op(op.inputs[k]).dtype;
      drop_unread_inputs(slope);
      const bool is_identity = slope.expr.is_input() && slope.reads[0] == slope.write &&
                               graph_.op(slope.inputs[0]).dtype == slope.dtype;
      if (is_identity) {
        give(op, k, {slope.inputs[0], op.write}, op.axes);
        continue;
      }
      if (!writes_plainly(op) && !draws(op.expr)) {
        slope.dtype = op.compute;
        slope.write = plain_access(op.axes.size());
        slope.shape = shape_of(slope.write, op.axes);
      }
      const Access at = slope.write;
      give(op, k, {add(std::move(slope)), at}, op.axes);
    }
  }
  /// Whether several points of `op` read one element of input `k`.
  static bool sums(const Op& op, std::size_t k) {
    return axes_in(op.reads[k]).size() < op.axes.size();
  }
  static void drop_unread_inputs(Op& op) {
    std::vector<int> renamed(op.inputs.size(), -1);
    std::vector<ValueId> inputs;
    std::vector<Access> reads;
    for (ScalarStep& step : op.expr.steps) {
      if (step.op != ScalarOp::input) continue;
      int& place = renamed[static_cast<std::size_t>(step.which)];
      if (place < 0) {
        place = static_cast<int>(inputs.size());
        inputs.push_back(op.inputs[static_cast<std::size_t>(step.which)]);
        reads.push_back(op.reads[static_cast<std::size_t>(step.which)]);
      }
      step.which = place;
    }
    op.inputs = std::move(inputs);
    op.reads = std::move(reads);
  }

  /// Turned round: the cotangent takes the place of the operand, and the operand's axes that of the
  /// result's.
  void pull_contract(const Op& op, const Points& g) {
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (!matters(op.inputs[k])) continue;
      std::vector<Points> factors{g};
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        if (i != k) factors.push_back({op.inputs[i], op.reads[i]});
      }
      // Axes that only this operand has were summed alone; each of their places gets the same.
      std::vector<int> kept;
      for (int axis : axes_in(op.reads[k])) {
        const bool known = std::any_of(factors.begin(), factors.end(), [&](const Points& factor) {
          return uses(factor.access, axis);
        });
        if (known) kept.push_back(axis);
      }
      const Shape shape = graph_.op(op.inputs[k]).shape;
      const DType dtype = graph_.op(op.inputs[k]).dtype;
      const bool direct =
          kept.size() == axes_in(op.reads[k]).size() &&
          (covers(op.reads[k], shape, op.axes) || is_window(op.reads[k], shape, op.axes));
      const Access write = direct ? op.reads[k] : plain_access(kept);
      Op turned = op_of(OpKind::contract, factors,
                        {write, direct ? shape : shape_of(write, op.axes)}, dtype);
      give(op, k, add(std::move(turned), op.axes), op.axes);
    }
  }

  static Ex equal(const Ex& a, const Ex& b) { return Ex::apply(ScalarOp::eq, a, b); }

  // Products of many have as slopes the products of all others. Where one is a division, a zero is
  // in the way of the slope or of that of the slope; the products of those before and behind are
  // right for every order.

  /// `from` scanned along an axis; with factors the linear recurrence.
  Points scan(const Space& at, int axis, Combine combine, const std::vector<Points>& from,
              bool reverse) {
    Op scanned = op_of(OpKind::scan, from, at.place, graph_.op(from[0].id).dtype);
    scanned.combine = combine;
    scanned.axis = axis;
    scanned.reverse = reverse;
    return add(std::move(scanned), at.axes);
  }
  /// `from`, which lies as `at` says, moved by one along an axis.
  Points shifted(const Space& at, int axis, const Points& from, bool back) {
    if (ask_equal(at.axes[static_cast<std::size_t>(axis)].size, 0)) return from;
    const DType dtype = graph_.op(from.id).dtype;
    return {add(shift_op(from, at.place, at.axes, axis, back, dtype)), at.place.access};
  }
  /// For each place along an axis what comes before it, of the cumulative products `up_to`, or with
  /// `reverse` of those from the end on.
  Points products_before(const Space& at, int axis, const Points& up_to, bool reverse) {
    const DType dtype = graph_.op(up_to.id).dtype;
    const Size last = at.axes[static_cast<std::size_t>(axis)].size - 1;
    const Ex is_first = equal(Ex::index(axis), reverse ? Ex::size(last) : Ex::integer(0));
    return map(at, {shifted(at, axis, up_to, reverse)}, where(is_first, Ex(1.0), Ex::input(0)),
               dtype, dtype);
  }
  /// At the points of `op`, a product, the product of all other elements that go into its result.
  /// Axis after axis, the last first: the products along the later ones are the elements of the
  /// next.
  Points products_of_others(const Op& op, const Points& x) {
    const DType compute = wide(op.dtype);
    std::vector<int> axes(op.axes.size());
    std::iota(axes.begin(), axes.end(), 0);
    const auto space = [&] {
      const Access access = plain_access(axes);
      return Space{op.axes, {access, shape_of(access, op.axes)}};
    };
    Points elements = map(space(), {x}, Ex::input(0), compute, compute);
    std::vector<Points> factors;
    Ex product(1.0);
    for (int axis = static_cast<int>(op.axes.size()) - 1; axis >= 0; --axis) {
      if (is_kept(op, axis)) continue;
      for (const bool reverse : {false, true}) {
        const Points up_to = scan(space(), axis, Combine::prod, {elements}, reverse);
        const auto number = static_cast<int>(factors.size());
        product = number == 0 ? Ex::input(0) : product * Ex::input(number);
        factors.push_back(products_before(space(), axis, up_to, reverse));
      }
      std::erase(axes, axis);
      const Space rest = space();
      Op inner = op_of(OpKind::reduce, {elements}, rest.place, compute);
      inner.combine = Combine::prod;
      elements = add(std::move(inner), op.axes);
    }
    if (factors.empty()) return map(op.axes, {}, Ex(1.0), compute, compute);
    return map(op.axes, factors, product, compute, compute);
  }

  // Where elements come to a product by their positions, none is before another. With one zero,
  // only its own place has a slope: the product of the others; with more, none has. Sums of powers
  // of the zeros stand for the other zeros that a slope is a multiple of, up to two of them: so the
  // first three derivatives are right, and those of higher order are where at most two zeros meet.
  static Ex is_zero(const Ex& x) { return equal(x, Ex(0.0)); }
  static Ex only_zero(const Ex& x) { return where(is_zero(x), x, Ex(0.0)); }
  static Ex without_zero(const Ex& x) { return where(is_zero(x), Ex(1.0), x); }
  /// Of an element, the cotangent of its product, the product of what is not zero, and number, sum
  /// and sum of squares of the zeros.
  static Ex slope_of_product() {
    const Ex x = Ex::input(0), g = Ex::input(1), others = Ex::input(2), count = Ex::input(3),
             sum = Ex::input(4), squares = Ex::input(5);
    // Of `zeros` elements with these sums, their product.
    const auto product_of = [&](const Ex& zeros, const Ex& sums, const Ex& of_squares) {
      const Ex pairs = (sums * sums - of_squares) * Ex(0.5);
      return where(
          equal(zeros, Ex(0.0)), Ex(1.0),
          where(equal(zeros, Ex(1.0)), sums, where(equal(zeros, Ex(2.0)), pairs, Ex(0.0))));
    };
    const Ex at_zero = product_of(count - Ex(1.0), sum - x, squares - x * x) * others;
    const Ex elsewhere = product_of(count, sum, squares) * others / without_zero(x);
    return g * where(is_zero(x), at_zero, elsewhere);
  }

  void pull_reduce(const Op& op, ValueId result, const Points& g) {
    if (!matters(op.inputs[0])) return;
    if (op.combine == Combine::sum && (has_windows(graph_, op) || meets_in(op)))
      return pull_window(op, g);
    // Beside its operand a reduction meets nothing.
    Points x{op.inputs[0], op.reads[0]};
    if (op.combine != Combine::sum)
      x.id = padded(graph_, x.id, x.access, op.axes, nothing_of(op.combine, graph_.op(x.id).dtype));
    if (op.combine == Combine::prod) {
      const DType compute = wide(op.dtype);
      const Points others = products_of_others(op, x);
      return give(op, 0, map(op.axes, {g, others}, Ex::input(0) * Ex::input(1), compute, compute),
                  op.axes);
    }
    if (op.combine != Combine::sum) {
      return pull_combined(op, x, g, {result, op.write}, [&](const Points& from, Combine combine) {
        return reduce(combine, op, from, wide(op.dtype));
      });
    }
    if (sums(op, 0)) {
      // An element that is read several times gets the sum of its results' cotangents.
      const DType compute = wide(op.dtype);
      return give(op, 0, map(op.axes, {g}, Ex::input(0), compute, compute), op.axes);
    }
    const DType dtype = graph_.op(x.id).dtype;
    const ValueId sent = converted(g.id, dtype);
    accumulate(x.id, move({sent, g.access}, op.axes, op.reads[0], Shape(graph_.op(x.id).shape)));
  }
  /// Whether a reduction reads an element twice, at different indices of its axes.
  bool meets_in(const Op& op) const {
    return is_window(op.reads[0], graph_.op(op.inputs[0]).shape, op.axes);
  }
  /// Turned round: what each tuple read gets the cotangent of what it wrote.
  void pull_window(const Op& op, const Points& g) {
    const Op& x = graph_.op(op.inputs[0]);
    Op turned = op_of(OpKind::reduce, {g}, {op.reads[0], x.shape}, x.dtype);
    accumulate(op.inputs[0], add(std::move(turned), op.axes).id);
  }

  /// Of the greatest or least of many `x` and of their product. At the points of `op`, `g` is the
  /// cotangent of their result, `y`, and combined(from, how) the combination of all `from` that go
  /// into one result.
  template <class Combined>
  void pull_combined(const Op& op, const Points& x, const Points& g, const Points& y,
                     const Combined& combined) {
    const DType compute = wide(op.dtype);
    const Ex value = Ex::input(0);
    switch (op.combine) {
      case Combine::max:
      case Combine::min: {
        // Elements that tie share it.
        const Points is_extreme =
            map(op.axes, {x, y}, equal(value, Ex::input(1)), wide(graph_.op(x.id).dtype), compute);
        const Points count = combined(is_extreme, Combine::sum);
        give(op, 0,
             map(op.axes, {is_extreme, g, count}, value * Ex::input(1) / Ex::input(2), compute,
                 compute),
             op.axes);
        return;
      }
      case Combine::prod: {
        const auto combination = [&](const Ex& formula, Combine how) {
          return combined(map(op.axes, {x}, formula, compute, compute), how);
        };
        const Ex zero = only_zero(value);
        const Points zeros = combination(is_zero(value), Combine::sum),
                     sum = combination(zero, Combine::sum),
                     squares = combination(zero * zero, Combine::sum),
                     nonzero = combination(without_zero(value), Combine::prod);
        give(op, 0,
             map(op.axes, {x, g, nonzero, zeros, sum, squares}, slope_of_product(), compute,
                 compute),
             op.axes);
        return;
      }
      case Combine::sum:
      case Combine::any:
      case Combine::all:
        return;
    }
  }

  void pull_concat(const Op& op, ValueId g) {
    Size offset = 0;
    for (ValueId input : op.inputs) {
      const Shape shape = graph_.op(input).shape;
      const auto dim = static_cast<std::size_t>(op.dim);
      if (matters(input)) {
        Op slice = plain_op(OpKind::reindex, op.dtype, shape);
        slice.inputs = {g};
        Access read = slice.write;
        if (!shape[dim].is_number() || shape[dim] > 0) read[dim].offset = offset;
        slice.reads = {std::move(read)};
        accumulate(input, add(std::move(slice)));
      }
      offset += shape[dim];
    }
  }

  void pull_gather(const Op& op, const Points& g) {
    if (!matters(op.inputs[0])) return;
    const Place place{op.reads[0], graph_.op(op.inputs[0]).shape};
    if (!is_at_position(op))
      return accumulate(op.inputs[0], by_positions(OpKind::scatter, op, g, place).id);
    const Points rest = zeros(axes_of(place.shape), graph_.op(g.id).dtype);
    accumulate(op.inputs[0], place_at_position(op, g, {rest.id, place.access}, place));
  }

  /// Of a gather, a scatter, or a place at a position.
  static NamedValue positions_of(const Op& op) { return {op.inputs.back(), op.reads.back()}; }

  /// A gather or scatter of `x` at the positions of `op`.
  Points by_positions(OpKind kind, const Op& op, const Points& x, const Place& place,
                      Combine combine = Combine::sum) {
    Op moved = op_of(kind, {x, positions_of(op)}, place, graph_.op(x.id).dtype);
    moved.combine = combine;
    moved.dim = op.dim;
    return add(std::move(moved), op.axes);
  }
  /// What lies in a value like `op`'s, a scatter's or a place's, at the positions of its points.
  Points at_positions(const Op& op, ValueId value) {
    return by_positions(OpKind::gather, op, {value, op.write}, place_of(op.axes));
  }

  void pull_scatter(const Op& op, ValueId result, const Points& g) {
    if (!matters(op.inputs[0])) return;
    const Points sent = at_positions(op, g.id);
    if (op.combine == Combine::sum) return give(op, 0, sent, op.axes);
    const Points x{op.inputs[0], op.reads[0]};
    pull_combined(op, x, sent, at_positions(op, result), [&](const Points& from, Combine combine) {
      return at_positions(
          op, by_positions(OpKind::scatter, op, from, {op.write, op.shape}, combine).id);
    });
  }

  /// The values of an operand at the points of `op`, in the type that its derivatives are computed
  /// in.
  Points at_points(const Op& op, const Points& from) {
    const DType compute = wide(op.dtype);
    return map(op.axes, {from}, Ex::input(0), compute, compute);
  }

  /// r_i = g_i + f_{i+1} · r_{i+1} in the order of a scan: what each place of a linear recurrence
  /// with the factors f, or a cumulative product of them, is worth to the results from it on.
  Points carried_back(const Op& op, const Points& g, const Points& factors) {
    const Space at{op.axes, place_of(op.axes)};
    const Points next = shifted(at, op.axis, factors, !op.reverse);
    return scan(at, op.axis, Combine::sum, {at_points(op, g), next}, !op.reverse);
  }

  /// Of y_k, the product of x_j up to k: Σ_k g_k ∂y_k/∂x_i is the product before i times what i is
  /// worth as a linear recurrence.
  void pull_products(const Op& op, ValueId result, const Points& g) {
    const Space at{op.axes, place_of(op.axes)};
    const DType compute = wide(op.dtype);
    const Points x = at_points(op, {op.inputs[0], op.reads[0]});
    const Points up_to = op.dtype == compute ? at_points(op, {result, op.write})
                                             : scan(at, op.axis, Combine::prod, {x}, op.reverse);
    const Points before = products_before(at, op.axis, up_to, op.reverse);
    const Points worth = carried_back(op, g, x);
    give(op, 0, map(op.axes, {before, worth}, Ex::input(0) * Ex::input(1), compute, compute),
         op.axes);
  }

  /// Of y_i = f_i · y_{i-1} + x_i.
  void pull_recurrence(const Op& op, ValueId result, const Points& g) {
    const Space at{op.axes, place_of(op.axes)};
    const DType compute = wide(op.dtype);
    const Points worth = carried_back(op, g, at_points(op, {op.inputs[1], op.reads[1]}));
    if (matters(op.inputs[0])) give(op, 0, worth, op.axes);
    if (!matters(op.inputs[1])) return;
    const Points before = shifted(at, op.axis, at_points(op, {result, op.write}), op.reverse);
    give(op, 1, map(op.axes, {before, worth}, Ex::input(0) * Ex::input(1), compute, compute),
         op.axes);
  }

  void pull_scan(const Op& op, ValueId result, const Points& g) {
    if (op.inputs.size() == 1 && !matters(op.inputs[0])) return;
    const Points x{op.inputs[0], op.reads[0]};
    const Ex value = Ex::input(0);
    switch (op.combine) {
      case Combine::sum: {
        if (op.inputs.size() == 2) return pull_recurrence(op, result, g);
        Op back = op;
        back.inputs = {g.id};
        back.reads = {g.access};
        back.reverse = !op.reverse;
        give(op, 0, {add(std::move(back)), op.write}, op.axes);
        return;
      }
      case Combine::max:
      case Combine::min: {
        // To the last element that is as great as the result, or NaN, up to it: where each result
        // has its value from.
        const Size size = op.axes[static_cast<std::size_t>(op.axis)].size;
        const Ex is_new = Ex::apply(ScalarOp::logical_or, equal(value, Ex::input(1)),
                                    Ex::apply(ScalarOp::ne, value, value));
        const Ex position =
            where(is_new, Ex::index(op.axis), op.reverse ? Ex::size(size - 1) : Ex::integer(0));
        const Points found =
            map(op.axes, {x, {result, op.write}}, position, DType::f64, DType::i64);
        const Points from = scan({op.axes, place_of(op.axes)}, op.axis,
                                 op.reverse ? Combine::min : Combine::max, {found}, op.reverse);
        const Place place = place_of(op.axes);
        Op sum = op_of(OpKind::scatter, {g, from}, place, op.dtype);
        sum.dim = op.axis;
        sum.write[static_cast<std::size_t>(op.axis)].terms.clear();
        give(op, 0, {add(std::move(sum), op.axes).id, place.access}, op.axes);
        return;
      }
      case Combine::prod:
        return pull_products(op, result, g);
      case Combine::any:
      case Combine::all:
        return;
    }
  }

  void pull_matrices(const Op& op, ValueId result, const Points& g) {
    std::vector<bool> wanted;
    for (ValueId input : op.inputs) wanted.push_back(matters(input));
    const std::vector<Points> sent = pull_matrix(graph_, op, result, g.id, wanted);
    for (std::size_t k = 0; k < sent.size(); ++k) {
      if (sent[k].id != no_cotangent) give(op, k, sent[k], op.axes);
    }
  }

  Graph graph_;
  std::vector<ValueId> cotangents_;
  std::vector<std::vector<Sent>> sent_;  // to each value, before it is moved there
  std::vector<bool> matters_;
  const std::vector<bool>& wanted_;
  std::vector<std::pair<ValueId, ValueId>> seeds_;  // output, its cotangent
};

}  // namespace

Vjp vjp(const Graph& forward, const std::vector<bool>& wanted, const std::vector<bool>& given) {
  return Builder(forward, wanted, given).run();
}

}  // namespace ein::autograd
