#include "passes/gather_again.hpp"

#include <algorithm>

#include "graph/build.hpp"
#include "graph/rewrite.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

/// Whether the result has more elements on a process than the input.
bool gathers(const Op& op) {
  if (op.kind != OpKind::reshard) return false;
  for (std::size_t d = 0; d < op.shape.rank(); ++d) {
    const Placement::Split from = op.from.split(d), to = op.to.split(d);
    if (to.size() > from.size() || !std::equal(to.begin(), to.end(), from.begin())) return false;
  }
  return !(op.from == op.to);
}

}  // namespace

Graph gather_again(const Graph& graph) {
  Graph result;
  int mark = 0;
  for (const Op& op : graph.ops) mark = std::max(mark, op.marks.again);
  std::vector<ValueId> moved(graph.ops.size()), again(graph.ops.size(), -1);
  for (std::size_t id = 0; id < graph.ops.size(); ++id) {
    Op op = graph.ops[id];
    const bool is_backward = op.marks.phase == Phase::backward;
    for (ValueId& input : op.inputs) {
      const auto i = static_cast<std::size_t>(input);
      const Op& read = graph.ops[i];
      input = moved[i];
      if (!is_backward || read.marks.phase == Phase::backward || !gathers(read) ||
          graph.op(read.inputs[0]).kind != OpKind::input)
        continue;
      if (again[i] < 0) {
        Op second = read;
        second.inputs[0] = moved[static_cast<std::size_t>(read.inputs[0])];
        second.marks.phase = Phase::backward;
        second.marks.again = ++mark;
        again[i] = append(result, std::move(second));
      }
      input = again[i];
    }
    moved[id] = append(result, std::move(op));
  }
  move_results(graph, result, moved);
  return result;
}

}  // namespace ein
