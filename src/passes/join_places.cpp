#include "passes/join_places.hpp"

#include <algorithm>
#include <optional>

#include "graph/build.hpp"
#include "graph/rewrite.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

/// Elements [begin, begin + size) of dimension `dim`, and all of the others.
struct Slice {
  ValueId place;
  std::size_t dim;
  Size begin, size;
};

Access write_of(const Op& place, const Slice& slice) {
  Access write = place.write;
  write[slice.dim].offset = 0;
  return write;
}
Shape shape_of(const Op& place, const Slice& slice) {
  Shape shape = place.shape;
  shape[slice.dim] = slice.size;
  return shape;
}

std::optional<Slice> slice_of(const Graph& graph, ValueId id) {
  const Op& op = graph.op(id);
  if (op.kind != OpKind::place || op.inputs.size() > 1) return std::nullopt;
  std::optional<Slice> slice;
  for (std::size_t d = 0; d < op.write.size(); ++d) {
    const auto size = extent_of(op.write[d], op.axes);  // a range, each once
    if (!size || ask_equal(*size, 0)) return std::nullopt;
    if (always_equal(*size, op.shape[d])) continue;
    if (slice) return std::nullopt;
    slice = Slice{id, d, op.write[d].offset, *size};
  }
  return slice && covers(write_of(op, *slice), shape_of(op, *slice), op.axes) ? slice
                                                                              : std::nullopt;
}

/// Whether the value is the sum of all inputs of the map, each once.
bool is_sum(const ScalarExpr& expr, std::size_t inputs) {
  std::size_t adds = 0, reads = 0;
  for (const ScalarStep& step : expr.steps) {
    if (step.op == ScalarOp::add) {
      ++adds;
    } else if (step.op == ScalarOp::input) {
      ++reads;
    } else {
      return false;
    }
  }
  return inputs >= 2 && reads == inputs && adds == inputs - 1;
}

std::vector<Slice> slices_of(const Graph& graph, const Op& op) {
  if (op.kind != OpKind::map || !is_sum(op.expr, op.inputs.size())) return {};
  std::vector<Slice> slices;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const auto slice = slice_of(graph, op.inputs[i]);
    const Op& place = graph.op(op.inputs[i]);
    if (!slice || slice->dim != (slices.empty() ? slice->dim : slices[0].dim) ||
        op.reads[i] != op.write || place.dtype != op.dtype || !always_equal(place.shape, op.shape))
      return {};
    slices.push_back(*slice);
  }
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
  // At the lengths at hand: a sum with zeros is no -0, so that what is joined for these lengths
  // must be for any.
  Size end = 0;
  for (const Slice& slice : slices) {
    if (!ask_equal(slice.begin, end)) return {};
    end += slice.size;
  }
  if (!ask_equal(end, op.shape[slices[0].dim])) return {};
  return slices;
}

}  // namespace

Graph join_places(const Graph& graph) {
  Graph result;
  std::vector<ValueId> moved;
  const auto at = [&](ValueId id) { return moved[static_cast<std::size_t>(id)]; };
  const auto add = [&](Op op) { return append(result, std::move(op)); };
  for (const Op& op : graph.ops) {
    const std::vector<Slice> slices = slices_of(graph, op);
    if (slices.empty()) {
      Op same = op;
      for (ValueId& input : same.inputs) input = at(input);
      moved.push_back(add(std::move(same)));
      continue;
    }
    Op joined{.kind = OpKind::concat, .dtype = op.dtype, .shape = op.shape};
    joined.dim = static_cast<int>(slices[0].dim);
    joined.marks = op.marks;
    for (const Slice& slice : slices) {
      Op piece = graph.op(slice.place);
      piece.kind = OpKind::reindex;
      piece.inputs[0] = at(piece.inputs[0]);
      piece.write = write_of(piece, slice);
      piece.shape = shape_of(piece, slice);
      joined.inputs.push_back(add(std::move(piece)));
    }
    moved.push_back(add(std::move(joined)));
  }
  move_results(graph, result, moved);
  return without_dead_values(result);
}

}  // namespace ein
