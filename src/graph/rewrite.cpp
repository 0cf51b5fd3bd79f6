#include "graph/rewrite.hpp"

#include <algorithm>

#include "size/ask.hpp"

namespace ein {

std::vector<char> live_values(const Graph& graph) {
  std::vector<char> live(graph.ops.size(), 0);
  for (ValueId output : graph.outputs) live[static_cast<std::size_t>(output)] = 1;
  for (const Assignment& assignment : graph.assignments) {
    live[static_cast<std::size_t>(assignment.target)] = 1;
    live[static_cast<std::size_t>(assignment.value)] = 1;
  }
  for (std::size_t id = graph.ops.size(); id-- > 0;) {
    if (!live[id]) continue;
    for (ValueId input : graph.ops[id].inputs) live[static_cast<std::size_t>(input)] = 1;
  }
  return live;
}

void move_results(const Graph& from, Graph& to, const std::vector<ValueId>& moved) {
  const auto place = [&](ValueId id) { return moved[static_cast<std::size_t>(id)]; };
  for (ValueId output : from.outputs) to.outputs.push_back(place(output));
  for (const Assignment& a : from.assignments)
    to.assignments.push_back({place(a.target), place(a.value)});
}

Graph keep_values(const Graph& graph, const std::vector<char>& live) {
  Graph kept;
  std::vector<ValueId> moved(graph.ops.size(), -1);
  for (std::size_t id = 0; id < graph.ops.size(); ++id) {
    if (!live[id]) continue;
    moved[id] = static_cast<ValueId>(kept.ops.size());
    kept.ops.push_back(graph.ops[id]);
    for (ValueId& input : kept.ops.back().inputs) input = moved[static_cast<std::size_t>(input)];
  }
  move_results(graph, kept, moved);
  return kept;
}

Graph without_dead_values(const Graph& graph) {
  std::vector<char> live = live_values(graph);
  for (std::size_t id = 0; id < graph.ops.size(); ++id)
    live[id] |= graph.ops[id].kind == OpKind::input;
  return keep_values(graph, live);
}

bool writes_plainly(const Op& op) {
  return std::all_of(op.write.begin(), op.write.end(),
                     [](const DimIndex& dim) { return dim.terms.size() == 1; });
}

Count points(const Op& op) {
  Count n = 1;
  for (const Axis& axis : op.axes) n *= Count(std::int64_t{axis.size});
  return n;
}

namespace {

bool have_equal_points(const Op& a, const Op& b) {
  const auto is_number = [](const Axis& axis) { return axis.size.is_number(); };
  if (std::all_of(a.axes.begin(), a.axes.end(), is_number) &&
      std::all_of(b.axes.begin(), b.axes.end(), is_number))
    return points(a) == points(b);
  const auto product = [](const Op& op) {
    Size product = 1;
    for (const Axis& axis : op.axes) product *= axis.size;
    return product;
  };
  return ask_equal(product(a), product(b));
}

}  // namespace

bool can_round(DType compute, DType dtype) {
  return dtype == compute ||
         (is_floating(compute) && (dtype == DType::bf16 || dtype == DType::f16));
}

ScalarExpr rounded(ScalarExpr expr, DType compute, DType dtype) {
  if (dtype == compute) return expr;
  const int value = static_cast<int>(expr.steps.size()) - 1;
  expr.steps.push_back(
      {.op = dtype == DType::bf16 ? ScalarOp::as_bf16 : ScalarOp::as_f16, .args = {value, -1, -1}});
  return expr;
}

ScalarExpr with_steps_once(const ScalarExpr& expr, const std::function<int(int input)>& number) {
  ScalarExpr shared;
  std::vector<int> place;
  for (ScalarStep step : expr.steps) {
    if (step.op == ScalarOp::input) step.which = number(step.which);
    step.move_arguments(place);
    const auto known = std::find(shared.steps.begin(), shared.steps.end(), step);
    place.push_back(static_cast<int>(known - shared.steps.begin()));
    if (known == shared.steps.end()) shared.steps.push_back(step);
  }
  // The value must be the last step.
  const int value = place.back();
  shared.steps.resize(static_cast<std::size_t>(value) + 1);
  return Ex::of(shared);
}

bool can_compute(const Op& map, const Op& reader, DType compute) {
  return map.compute == compute && can_round(compute, map.dtype) && !draws(map.expr) &&
         writes_plainly(map) && have_equal_points(map, reader);
}

std::vector<DimIndex> axis_values(const Op& op, const Access& read) {
  std::vector<DimIndex> values(op.axes.size());
  for (std::size_t d = 0; d < op.write.size(); ++d)
    values[static_cast<std::size_t>(op.write[d].terms[0].axis)] = read[d];
  return values;
}

std::optional<ScalarExpr> with_indices_of(ScalarExpr expr,
                                          const std::vector<DimIndex>& axis_value) {
  for (ScalarStep& step : expr.steps) {
    if (step.op != ScalarOp::index) continue;
    const DimIndex& value = axis_value[static_cast<std::size_t>(step.which)];
    if (!always_equal(value.offset, 0) || value.terms.size() != 1 ||
        !is_one(value.terms[0].coefficient))
      return std::nullopt;
    step.which = value.terms[0].axis;
  }
  return expr;
}

Access composed(const Access& access, const std::vector<DimIndex>& axis_value) {
  Access result;
  for (const DimIndex& dim : access) {
    DimIndex sum{dim.offset, {}};
    for (const DimIndex::Term& term : dim.terms) {
      const DimIndex& value = axis_value[static_cast<std::size_t>(term.axis)];
      sum.offset += term.coefficient * value.offset;
      for (const DimIndex::Term& t : value.terms)
        sum.terms.push_back({t.axis, t.coefficient * term.coefficient});
    }
    result.push_back(std::move(sum));
  }
  return result;
}

std::vector<Read> reads_of(const Op& op) {
  std::vector<Read> reads;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) reads.push_back({op.inputs[i], op.reads[i]});
  return reads;
}

Computed as_read(Read read) { return {Ex::input(0), {std::move(read)}}; }

std::optional<Computed> computed_at(const Op& map, const Access& read) {
  const std::vector<DimIndex> axis_value = axis_values(map, read);
  std::optional<ScalarExpr> expr = with_indices_of(map.expr, axis_value);
  if (!expr) return std::nullopt;
  Computed value{*std::move(expr), reads_of(map)};
  for (Read& inner : value.reads) inner.access = composed(inner.access, axis_value);
  return value;
}

Computed substituted(const ScalarExpr& expr, const std::vector<Computed>& inputs) {
  Computed whole;
  std::vector<ScalarExpr> inner;
  for (const Computed& input : inputs) {
    std::vector<ScalarExpr> numbered;
    for (const Read& read : input.reads) {
      numbered.push_back(Ex::input(static_cast<int>(whole.reads.size())));
      whole.reads.push_back(read);
    }
    inner.push_back(substitute(input.expr, numbered));
  }
  whole.expr = substitute(expr, inner);
  return whole;
}

}  // namespace ein
