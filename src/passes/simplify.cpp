#include "passes/simplify.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>

#include <ein/dtype.hpp>
#include "graph/build.hpp"
#include "graph/fields.hpp"
#include "graph/rewrite.hpp"
#include "nest/combine.hpp"
#include "passes/fusion.hpp"
#include "passes/join_places.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"

namespace ein {
namespace {

using Words = std::vector<std::int64_t>;

/// All that an operation's value and its derivatives depend on; names of axes are not.
Words words_of(const Op& op) {
  Words words;
  for_each_word<Phase>(op, AppendTo(words));
  return words;
}

/// Bit for bit: -0.0 is not 0.0.
bool is_constant(const ScalarStep& step, double value) {
  return step.op == ScalarOp::constant &&
         std::bit_cast<std::uint64_t>(step.real) == std::bit_cast<std::uint64_t>(value);
}

/// The value of arithmetic on constants alone, as steps of type T compute it.
template <class T>
std::optional<double> folded(const ScalarStep& step, const ScalarExpr& steps) {
  const int arity = info(step.op).arity;
  T x[2] = {};
  if (arity < 1 || arity > 2) return std::nullopt;
  for (int i = 0; i < arity; ++i) {
    const ScalarStep& arg = steps.steps[static_cast<std::size_t>(step.args[i])];
    if (arg.op != ScalarOp::constant) return std::nullopt;
    x[i] = static_cast<T>(arg.real);
  }
  switch (step.op) {
    case ScalarOp::neg:
      return -x[0];
    case ScalarOp::add:
      return x[0] + x[1];
    case ScalarOp::sub:
      return x[0] - x[1];
    case ScalarOp::mul:
      return x[0] * x[1];
    case ScalarOp::div:
      return x[0] / x[1];
    default:
      return std::nullopt;
  }
}

/// x · 1, x / 1, x + (-0.0) and x - 0.0 are x, also of -0.0, an infinity and NaN; x + 0.0 is not,
/// since -0.0 + 0.0 is 0.0.
ScalarExpr without_neutral_steps(const ScalarExpr& expr, DType compute) {
  ScalarExpr result;
  std::vector<int> place;
  for (ScalarStep step : expr.steps) {
    step.move_arguments(place);
    const auto arg_is = [&](int i, double value) {
      return is_constant(result.steps[static_cast<std::size_t>(step.args[i])], value);
    };
    int same_as = -1;
    if (const auto value =
            compute == DType::f64 ? folded<double>(step, result) : folded<float>(step, result))
      step = ScalarStep{
          .op = ScalarOp::constant, .real = *value, .integer = convert<std::int64_t>(*value)};
    switch (step.op) {
      case ScalarOp::mul:
        if (arg_is(1, 1))
          same_as = step.args[0];
        else if (arg_is(0, 1))
          same_as = step.args[1];
        break;
      case ScalarOp::add:
        if (arg_is(1, -0.0))
          same_as = step.args[0];
        else if (arg_is(0, -0.0))
          same_as = step.args[1];
        break;
      case ScalarOp::div:
        if (arg_is(1, 1)) same_as = step.args[0];
        break;
      case ScalarOp::sub:
        if (arg_is(1, 0.0)) same_as = step.args[0];
        break;
      default:
        break;
    }
    if (same_as < 0) {
      same_as = static_cast<int>(result.steps.size());
      result.steps.push_back(step);
    }
    place.push_back(same_as);
  }
  result.steps.resize(static_cast<std::size_t>(place.back()) + 1);
  return Ex::of(result);
}

/// Sets what a map computes, and of what.
void set_computed(Op& op, Computed computed) {
  op.expr = std::move(computed.expr);
  op.inputs.clear();
  op.reads.clear();
  for (Read& read : computed.reads) {
    op.inputs.push_back(read.value);
    op.reads.push_back(std::move(read.access));
  }
}

/// One read for each element that the map needs, each step of its expression once.
void tidy(Op& op) {
  std::vector<ValueId> inputs;
  std::vector<Access> reads;
  if (is_floating(op.compute)) op.expr = without_neutral_steps(op.expr, op.compute);
  op.expr = with_steps_once(op.expr, [&](int input) {
    const auto which = static_cast<std::size_t>(input);
    std::size_t same = 0;
    while (same < inputs.size() &&
           !(inputs[same] == op.inputs[which] && reads[same] == op.reads[which]))
      ++same;
    if (same == inputs.size()) {
      inputs.push_back(op.inputs[which]);
      reads.push_back(op.reads[which]);
    }
    return static_cast<int>(same);
  });
  op.inputs = std::move(inputs);
  op.reads = std::move(reads);
}

/// Computes maps inside the maps that read them, where that computes each element once, or where
/// computing it again costs less than to keep it.
class MapFusion {
 public:
  MapFusion(Graph graph, bool keeps_constants)
      : graph_(std::move(graph)),
        keeps_constants_(keeps_constants),
        users_(graph_.ops.size(), 0),
        readers_fit_(graph_.ops.size(), true) {
    for (ValueId output : graph_.outputs) readers_fit_[static_cast<std::size_t>(output)] = false;
    for (const Assignment& a : graph_.assignments)
      readers_fit_[static_cast<std::size_t>(a.value)] = false;
    for (const Op& op : graph_.ops) {
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const auto input = static_cast<std::size_t>(op.inputs[i]);
        ++users_[input];
        readers_fit_[input] = readers_fit_[input] && fits(graph_.ops[input], op, i);
      }
    }
  }

  Graph run() {
    for (Op& op : graph_.ops) {
      if (op.kind == OpKind::map) take_in_producers(op);
    }
    return without_dead_values(graph_);
  }

 private:
  bool fits(const Op& producer, const Op& reader, std::size_t input) const {
    return reader.kind == OpKind::map && !(keeps_constants_ && producer.marks.detached) &&
           takes_in(graph_, reader, producer, reader.reads[input]);
  }

  /// At most one step per element, of one operand as large as the result: as quick to compute as to
  /// read. What is rounded takes less memory than what it is computed of, and some steps.
  bool is_trivial(const Op& op) const {
    if (op.dtype != op.compute) return false;
    std::int64_t steps = 0, large = 0;
    for (const ScalarStep& step : op.expr.steps) {
      steps += info(step.op).arity > 0;
      if (step.op == ScalarOp::div || info(step.op).arity == 1) steps += step.op != ScalarOp::neg;
    }
    for (ValueId input : op.inputs) large += 4 * numel(graph_.op(input).shape) > numel(op.shape);
    return steps <= 1 && large <= 1;
  }

  bool moves_into_readers(ValueId id) const {
    const auto i = static_cast<std::size_t>(id);
    return readers_fit_[i] && (users_[i] == 1 || is_trivial(graph_.ops[i]));
  }

  /// All that fit, where they share at least an eighth of their steps, as the parts of a complex
  /// function do, or where `op` adds none, as a conversion. Else as many as there is room for.
  void take_in_producers(Op& op) {
    std::size_t steps = op.expr.steps.size(), longest = 0;
    for (const ValueId input : op.inputs) {
      if (!moves_into_readers(input)) continue;
      steps += graph_.op(input).expr.steps.size();
      longest = std::max(longest, graph_.op(input).expr.steps.size());
    }
    if (steps > FusedSize::most_steps) {
      Op all = op;
      take_in_producers(all, true);
      if (all.expr.steps.size() <= std::max(longest, steps / 8 * 7)) {
        op = std::move(all);
        return;
      }
    }
    take_in_producers(op, false);
  }
  void take_in_producers(Op& op, bool of_any_length) {
    std::vector<Computed> inputs;
    bool fused = false;
    FusedSize size(op);
    for (Read& read : reads_of(op)) {
      const Op& producer = graph_.op(read.value);
      FusedSize more(producer);
      if (of_any_length) more.steps = 0;
      std::optional<Computed> value;
      if (moves_into_readers(read.value) && size.has_room_for(more))
        value = computed_at(producer, read.access);  // it may have taken in more since
      if (!value) {
        inputs.push_back(as_read(std::move(read)));
        continue;
      }
      fused = true;
      size += more;
      value->expr = rounded(std::move(value->expr), producer.compute, producer.dtype);
      inputs.push_back(*std::move(value));
    }
    if (!fused) return;
    set_computed(op, substituted(op.expr, inputs));
    tidy(op);
  }

  Graph graph_;
  const bool keeps_constants_;  // to differentiation
  std::vector<int> users_;
  std::vector<char>
      readers_fit_;  // of each value: it could be computed inside of every map that reads it
};

class Simplifier {
 public:
  /// What is to become of scatters. Those of a graph of which all is needed may become maps.
  enum class Scatters { stay, if_checked, are_checked };
  Simplifier(const Graph& graph, Scatters scatters, bool keeps_constants)
      : from_(graph),
        scatters_(scatters),
        keeps_constants_(keeps_constants),
        users_(graph.ops.size(), 0) {
    for (const Op& op : graph.ops) {
      for (const ValueId input : op.inputs) ++users_[static_cast<std::size_t>(input)];
    }
    for (const ValueId output : graph.outputs) ++users_[static_cast<std::size_t>(output)];
    for (const Assignment& a : graph.assignments) ++users_[static_cast<std::size_t>(a.value)];
  }

  Graph run() {
    for (const Op& op : from_.ops) moved_.push_back(take(op));
    move_results(from_, to_, moved_);
    return without_dead_values(to_);
  }

 private:
  ValueId place(ValueId id) const { return moved_[static_cast<std::size_t>(id)]; }

  ValueId add(Op op) { return append(to_, std::move(op)); }

  ValueId take(const Op& original) {
    if (original.kind == OpKind::input) return add(original);
    Op op = original;
    for (ValueId& input : op.inputs) input = place(input);
    if (op.kind == OpKind::map || op.kind == OpKind::reindex) read_parts(op);
    // After read_parts(): the new map must not read around the gather that checks its positions.
    if (op.kind == OpKind::scatter && has_checked_positions(original)) scatter_to_map(op);
    if (op.kind == OpKind::map) simplify_map(op);
    if (op.kind == OpKind::reindex) {
      if (op.reads[0] == op.write && always_equal(op.shape, to_.op(op.inputs[0]).shape))
        return op.inputs[0];
      constant_to_map(op);
      rearranged_to_map(op, original.inputs[0]);
    }
    if (op.kind == OpKind::map && is_identity(op)) return op.inputs[0];
    const auto [known, is_new] =
        known_.try_emplace(words_of(op), static_cast<ValueId>(to_.ops.size()));
    if (is_new) return add(std::move(op));
    // What a backward pass computes, too, is no part of the update.
    Phase& phase = to_.ops[static_cast<std::size_t>(known->second)].marks.phase;
    if (phase == Phase::update) phase = op.marks.phase;
    return known->second;
  }

  /// One position of a concatenation is read from the part that has it: the real or the imaginary
  /// parts of complex numbers.
  void read_parts(Op& op) const {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      for (const Op* from = &to_.op(op.inputs[i]); from->kind == OpKind::concat;
           from = &to_.op(op.inputs[i])) {
        DimIndex& at = op.reads[i][static_cast<std::size_t>(from->dim)];
        if (!at.terms.empty() || !at.offset.is_number()) break;
        const std::optional<std::pair<ValueId, std::int64_t>> part =
            part_at(*from, at.offset.word());
        if (!part) break;
        op.inputs[i] = part->first;
        at.offset = part->second;
      }
    }
  }
  /// The part of a concatenation that has this position, and the position in it; none where that
  /// depends on lengths.
  std::optional<std::pair<ValueId, std::int64_t>> part_at(const Op& concat,
                                                          std::int64_t position) const {
    for (const ValueId part : concat.inputs) {
      const Size size = to_.op(part).shape[static_cast<std::size_t>(concat.dim)];
      if (!size.is_number()) break;
      if (position < size.word()) return std::pair(part, position);
      position -= size.word();
    }
    return std::nullopt;
  }

  bool is_identity(const Op& op) const {
    return op.expr.is_input() && !(keeps_constants_ && op.marks.detached) &&
           op.reads[0] == op.write && has_all_values(op.compute, op.dtype) &&
           always_equal(op.shape, to_.op(op.inputs[0]).shape) &&
           op.dtype == to_.op(op.inputs[0]).dtype;
  }

  /// The one number that a value consists of.
  std::optional<ScalarStep> constant(ValueId id) const {
    const Op& op = to_.op(id);
    if (op.kind != OpKind::map || op.expr.steps.size() != 1 ||
        op.expr.steps[0].op != ScalarOp::constant)
      return std::nullopt;
    ScalarStep step = op.expr.steps[0];
    if (op.dtype == DType::f32)
      step.real = static_cast<double>(static_cast<float>(step.real));
    else if (op.dtype != DType::f64)
      return std::nullopt;
    return step;
  }

  void simplify_map(Op& op) const {
    std::vector<ScalarExpr> inner;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const auto number = is_integral(op.compute) ? std::nullopt : constant(op.inputs[i]);
      inner.push_back(number ? Ex(number->real) : Ex::input(static_cast<int>(i)));
    }
    op.expr = substitute(op.expr, inner);
    tidy(op);
  }

  /// Every element of a rearranged constant is that constant.
  void constant_to_map(Op& op) const {
    const auto number = constant(op.inputs[0]);
    if (!number) return;
    op.kind = OpKind::map;
    op.compute = op.dtype;
    op.expr = Ex(number->real);
    op.inputs.clear();
    op.reads.clear();
  }

  /// A map that is only given or left dimensions of one element has them itself: so others can take
  /// it in.
  void rearranged_to_map(Op& op, ValueId read) const {
    if (op.kind != OpKind::reindex) return;
    const Op& map = to_.op(op.inputs[0]);
    const auto is_whole = [&](const DimIndex& dim) {
      return dim.terms.size() == 1 && is_one(dim.terms[0].coefficient) &&
             always_equal(dim.offset, 0);
    };
    const auto axes_in_order = [&](const Access& access) -> std::optional<std::vector<int>> {
      std::vector<int> axes;
      for (const DimIndex& dim : access) {
        if (!dim.terms.empty() && !is_whole(dim)) return std::nullopt;
        if (!dim.terms.empty()) axes.push_back(dim.terms[0].axis);
      }
      return axes;
    };
    const auto from = axes_in_order(op.reads[0]), to = axes_in_order(op.write);
    if (map.kind != OpKind::map || users_[static_cast<std::size_t>(read)] > 1 || !from ||
        from != to || from->size() != op.axes.size() || !can_compute(map, op, map.compute) ||
        map.marks.detached || map.marks.stationary)
      return;
    auto value = computed_at(map, op.reads[0]);
    if (!value) return;
    op.kind = OpKind::map;
    op.compute = map.compute;
    set_computed(op, *std::move(value));
    for (DimIndex& dim : op.write) {
      if (!dim.terms.empty()) continue;
      dim.terms = {{static_cast<int>(op.axes.size()), 1}};
      op.axes.push_back({"one", 1});
    }
  }

  /// Whether a gather before it, with an axis as long, stops where a position lies outside.
  bool has_checked_positions(const Op& scatter) const {
    const auto are_as_long = [](const Axis& a, const Axis& b) {
      return always_equal(a.size, b.size);
    };
    const auto checks = [&](const Op& op) {
      return op.kind == OpKind::gather && op.inputs.back() == scatter.inputs.back() &&
             op.reads.back() == scatter.reads.back() &&
             std::ranges::equal(op.axes, scatter.axes, are_as_long) &&
             always_equal(from_.op(op.inputs[0]).shape[static_cast<std::size_t>(op.dim)],
                          scatter.shape[static_cast<std::size_t>(scatter.dim)]);
    };
    if (scatters_ != Scatters::if_checked) return scatters_ == Scatters::are_checked;
    return std::any_of(from_.ops.begin(), from_.ops.begin() + std::ssize(moved_), checks);
  }

  /// Where each value has a line of the result for itself, the line is the combination of nothing
  /// but at its position.
  void scatter_to_map(Op& op) const {
    const auto dim = static_cast<std::size_t>(op.dim);
    if (!is_floating(op.dtype)) return;
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      if (!uses(op.write, static_cast<int>(a))) return;
    }
    const auto axis = static_cast<int>(op.axes.size());
    if (op.shape[dim] >= (1 << 24)) return;  // beyond what f32 counts exactly
    op.axes.push_back({"position", op.shape[dim]});
    op.write[dim].terms = {{axis, 1}};
    op.kind = OpKind::map;
    op.compute = op.dtype == DType::f64 ? DType::f64 : DType::f32;
    // Added to 0.0: a -0.0 becomes 0.0.
    const Ex value = op.combine == Combine::sum ? Ex::input(0) + Ex(0.0) : Ex::input(0);
    const Ex nothing(identity<double>(op.combine));
    op.expr = where(Ex::apply(ScalarOp::eq, Ex::index(axis), Ex::input(1)), value, nothing);
    op.combine = Combine::sum;
    op.dim = 0;
  }

  const Graph& from_;
  const Scatters scatters_;
  const bool keeps_constants_;  // to differentiation
  std::vector<int> users_;      // of each value of `from_`
  Graph to_;
  std::vector<ValueId> moved_;
  std::map<Words, ValueId> known_;
};

}  // namespace

Graph simplify(const Graph& graph, bool is_derivative) {
  using Scatters = Simplifier::Scatters;
  Graph simple = Simplifier(graph, Scatters::stay, is_derivative).run();
  const auto is_scatter = [](const Op& op) { return op.kind == OpKind::scatter; };
  if (std::ranges::any_of(simple.ops, is_scatter)) {
    const auto scatters = is_derivative ? Scatters::are_checked : Scatters::if_checked;
    simple = Simplifier(simple, scatters, is_derivative).run();
  }
  return join_places(MapFusion(simple, is_derivative).run());
}

}  // namespace ein
