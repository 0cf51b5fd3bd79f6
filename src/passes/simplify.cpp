#include "passes/simplify.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include <ein/dtype.hpp>
#include "graph/rewrite.hpp"

namespace ein {
namespace {

using Words = std::vector<std::int64_t>;

void add(Words& words, const Access& access) {
  words.push_back(static_cast<std::int64_t>(access.size()));
  for (const DimIndex& dim : access) {
    words.push_back(dim.offset);
    words.push_back(static_cast<std::int64_t>(dim.terms.size()));
    for (const DimIndex::Term& term : dim.terms) {
      words.push_back(term.axis);
      words.push_back(term.coefficient);
    }
  }
}

/// All that an operation's value depends on; names of axes are not.
Words words_of(const Op& op) {
  Words words{static_cast<std::int64_t>(op.kind), static_cast<std::int64_t>(op.dtype), static_cast<std::int64_t>(op.compute),
              static_cast<std::int64_t>(op.combine), op.dim, op.axis, op.reverse, op.again};
  words.push_back(static_cast<std::int64_t>(op.shape.rank()));
  words.insert(words.end(), op.shape.begin(), op.shape.end());
  words.push_back(static_cast<std::int64_t>(op.inputs.size()));
  words.insert(words.end(), op.inputs.begin(), op.inputs.end());
  for (const Axis& axis : op.axes) words.push_back(axis.size);
  for (const Access& read : op.reads) add(words, read);
  add(words, op.write);
  for (const ScalarStep& step : op.expr.steps) {
    words.push_back(static_cast<std::int64_t>(step.op) | static_cast<std::int64_t>(step.of_run) << 32);
    for (int arg : step.args) words.push_back(arg);
    words.push_back(step.which);
    words.push_back(std::bit_cast<std::int64_t>(step.real));
    words.push_back(step.integer);
    words.push_back(static_cast<std::int64_t>(step.seed));
    words.push_back(static_cast<std::int64_t>(step.stream));
  }
  return words;
}

bool is_constant(const ScalarStep& step, double value) { return step.op == ScalarOp::constant && step.real == value; }

/// The value of arithmetic on constants alone, in double precision.
std::optional<double> folded(const ScalarStep& step, const ScalarExpr& steps) {
  const int arity = info(step.op).arity;
  double x[2] = {};
  if (arity < 1 || arity > 2) return std::nullopt;
  for (int i = 0; i < arity; ++i) {
    const ScalarStep& arg = steps.steps[static_cast<std::size_t>(step.args[i])];
    if (arg.op != ScalarOp::constant) return std::nullopt;
    x[i] = arg.real;
  }
  switch (step.op) {
    case ScalarOp::neg: return -x[0];
    case ScalarOp::add: return x[0] + x[1];
    case ScalarOp::sub: return x[0] - x[1];
    case ScalarOp::mul: return x[0] * x[1];
    case ScalarOp::div: return x[0] / x[1];
    default: return std::nullopt;
  }
}

/// x · 1, x / 1, x + 0 and x - 0 are x.
ScalarExpr without_neutral_steps(const ScalarExpr& expr) {
  ScalarExpr result;
  std::vector<int> place;
  for (ScalarStep step : expr.steps) {
    for (int& arg : step.args) {
      if (arg >= 0) arg = place[static_cast<std::size_t>(arg)];
    }
    const auto arg_is = [&](int i, double value) { return is_constant(result.steps[static_cast<std::size_t>(step.args[i])], value); };
    int same_as = -1;
    if (const auto value = folded(step, result)) step = ScalarStep{.op = ScalarOp::constant, .real = *value, .integer = convert<std::int64_t>(*value)};
    switch (step.op) {
      case ScalarOp::mul:
        if (arg_is(1, 1)) same_as = step.args[0];
        else if (arg_is(0, 1)) same_as = step.args[1];
        break;
      case ScalarOp::add:
        if (arg_is(1, 0)) same_as = step.args[0];
        else if (arg_is(0, 0)) same_as = step.args[1];
        break;
      case ScalarOp::div:
        if (arg_is(1, 1)) same_as = step.args[0];
        break;
      case ScalarOp::sub:
        if (arg_is(1, 0)) same_as = step.args[0];
        break;
      default: break;
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

/// One read for each element that the map needs, each step of its expression once.
void tidy(Op& op) {
  std::vector<ValueId> inputs;
  std::vector<Access> reads;
  ScalarExpr shared;
  std::vector<int> place;
  if (op.compute != DType::i64) op.expr = without_neutral_steps(op.expr);
  for (ScalarStep step : op.expr.steps) {
    if (step.op == ScalarOp::input) {
      const auto which = static_cast<std::size_t>(step.which);
      std::size_t same = 0;
      while (same < inputs.size() && !(inputs[same] == op.inputs[which] && reads[same] == op.reads[which])) ++same;
      if (same == inputs.size()) {
        inputs.push_back(op.inputs[which]);
        reads.push_back(op.reads[which]);
      }
      step.which = static_cast<int>(same);
    }
    for (int& arg : step.args) {
      if (arg >= 0) arg = place[static_cast<std::size_t>(arg)];
    }
    const auto known = std::find(shared.steps.begin(), shared.steps.end(), step);
    place.push_back(static_cast<int>(known - shared.steps.begin()));
    if (known == shared.steps.end()) shared.steps.push_back(step);
  }
  // The value must be the last step.
  const int value = place.back();
  shared.steps.resize(static_cast<std::size_t>(value) + 1);
  op.expr = Ex::of(shared);
  op.inputs = std::move(inputs);
  op.reads = std::move(reads);
}

bool is_pure(const ScalarExpr& expr) {
  return std::none_of(expr.steps.begin(), expr.steps.end(), [](const ScalarStep& step) {
    return step.op == ScalarOp::index || step.op == ScalarOp::uniform || step.op == ScalarOp::normal;
  });
}

std::int64_t points(const Op& op) {
  std::int64_t n = 1;
  for (const Axis& axis : op.axes) n *= axis.size;
  return n;
}

/// Computes every map inside the map that alone reads it, where that computes each element once.
Graph fuse_maps(Graph graph) {
  std::vector<int> users(graph.ops.size(), 0);
  for (const Op& op : graph.ops) {
    for (ValueId input : op.inputs) ++users[static_cast<std::size_t>(input)];
  }
  for (ValueId output : graph.outputs) users[static_cast<std::size_t>(output)] = 2;
  for (const Assignment& a : graph.assignments) users[static_cast<std::size_t>(a.value)] = 2;
  const auto is_plain = [](const DimIndex& dim) { return dim.terms.size() == 1; };
  const auto fits = [&](const Op& producer, const Op& reader) {
    return producer.kind == OpKind::map && producer.compute == reader.compute && producer.dtype == producer.compute &&
           is_pure(producer.expr) && std::all_of(producer.write.begin(), producer.write.end(), is_plain) &&
           points(producer) == points(reader);
  };
  for (Op& op : graph.ops) {
    if (op.kind != OpKind::map) continue;
    std::vector<ScalarExpr> inner;
    std::vector<ValueId> inputs;
    std::vector<Access> reads;
    bool fused = false;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const Op& producer = graph.op(op.inputs[i]);
      if (users[static_cast<std::size_t>(op.inputs[i])] != 1 || !fits(producer, op)) {
        inner.push_back(Ex::input(static_cast<int>(inputs.size())));
        inputs.push_back(op.inputs[i]);
        reads.push_back(op.reads[i]);
        continue;
      }
      fused = true;
      std::vector<DimIndex> axis_value(producer.axes.size());
      for (std::size_t d = 0; d < producer.write.size(); ++d) {
        axis_value[static_cast<std::size_t>(producer.write[d].terms[0].axis)] = op.reads[i][d];
      }
      std::vector<ScalarExpr> shifted;
      for (std::size_t j = 0; j < producer.inputs.size(); ++j) {
        shifted.push_back(Ex::input(static_cast<int>(inputs.size())));
        inputs.push_back(producer.inputs[j]);
        reads.push_back(composed(producer.reads[j], axis_value));
      }
      inner.push_back(substitute(producer.expr, shifted));
    }
    if (!fused) continue;
    op.expr = substitute(op.expr, inner);
    op.inputs = std::move(inputs);
    op.reads = std::move(reads);
    tidy(op);
  }
  std::vector<char> live = live_values(graph);
  for (std::size_t id = 0; id < graph.ops.size(); ++id) live[id] |= graph.ops[id].kind == OpKind::input;
  return keep_values(graph, live);
}

class Simplifier {
 public:
  explicit Simplifier(const Graph& graph) : from_(graph) {}

  Graph run() {
    for (const Op& op : from_.ops) moved_.push_back(take(op));
    for (ValueId output : from_.outputs) to_.outputs.push_back(place(output));
    for (const Assignment& a : from_.assignments) to_.assignments.push_back({place(a.target), place(a.value)});
    std::vector<char> live = live_values(to_);
    // Inputs stay, wanted or not: callers count them.
    for (std::size_t id = 0; id < to_.ops.size(); ++id) live[id] |= to_.ops[id].kind == OpKind::input;
    return keep_values(to_, live);
  }

 private:
  ValueId place(ValueId id) const { return moved_[static_cast<std::size_t>(id)]; }

  ValueId add(Op op) {
    to_.ops.push_back(std::move(op));
    return static_cast<ValueId>(to_.ops.size()) - 1;
  }

  ValueId take(const Op& original) {
    if (original.kind == OpKind::input) return add(original);
    Op op = original;
    for (ValueId& input : op.inputs) input = place(input);
    if (op.kind == OpKind::map) simplify_map(op);
    if (op.kind == OpKind::scatter_add) scatter_to_map(op);
    if (op.kind == OpKind::reindex) {
      if (op.again == 0 && op.reads[0] == op.write && op.shape == to_.op(op.inputs[0]).shape) return op.inputs[0];
      constant_to_map(op);
    }
    if (op.kind == OpKind::map && is_identity(op)) return op.inputs[0];
    const auto [known, is_new] = known_.try_emplace(words_of(op), static_cast<ValueId>(to_.ops.size()));
    return is_new ? add(std::move(op)) : known->second;
  }

  bool is_identity(const Op& op) const {
    return op.expr.steps.size() == 1 && op.expr.steps[0].op == ScalarOp::input && op.reads[0] == op.write &&
           op.shape == to_.op(op.inputs[0]).shape && op.dtype == to_.op(op.inputs[0]).dtype;
  }

  /// The one number that a value consists of.
  std::optional<ScalarStep> constant(ValueId id) const {
    const Op& op = to_.op(id);
    if (op.kind != OpKind::map || op.expr.steps.size() != 1 || op.expr.steps[0].op != ScalarOp::constant) return std::nullopt;
    ScalarStep step = op.expr.steps[0];
    if (op.dtype == DType::f32) step.real = static_cast<double>(static_cast<float>(step.real));
    else if (op.dtype != DType::f64) return std::nullopt;
    return step;
  }

  void simplify_map(Op& op) const {
    std::vector<ScalarExpr> inner;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const auto number = op.compute == DType::i64 ? std::nullopt : constant(op.inputs[i]);
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

  /// Where each value has a line of the result for itself, the line is 0 but at its position.
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
    op.expr = Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::eq, Ex::index(axis), Ex::input(1)), Ex::input(0), Ex(0.0));
    op.dim = 0;
  }

  const Graph& from_;
  Graph to_;
  std::vector<ValueId> moved_;
  std::map<Words, ValueId> known_;
};

}  // namespace

Graph simplify(const Graph& graph) { return fuse_maps(Simplifier(graph).run()); }

}  // namespace ein
