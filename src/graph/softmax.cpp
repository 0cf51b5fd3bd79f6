// softmax, log_softmax and cross_entropy: all from x - max x and Σ exp(x - max x).
#include "graph/named.hpp"

namespace ein {
namespace {

struct Exponentials {
  NamedValue max, exp, sum;  // of each row, of each element, of each row
};

/// The results do not depend on the maximum, which keeps exp in range; it is a constant to
/// differentiation.
Exponentials exponentials(NamedBuild& b) {
  const NamedValue max = b.reduce(Combine::max, b.operand(0), b.rows(), b.dtype());
  b.detach(max);
  const Ex shifted = Ex::input(0) - Ex::input(1);
  const NamedValue exp = b.map({b.operand(0), max}, Ex::apply(ScalarOp::exp, shifted), b.full());
  return {max, exp, b.reduce(Combine::sum, exp, b.rows(), b.wide())};
}

/// Rows without elements have no maximum, and no results either.
bool is_empty(const NamedBuild& b) { return numel(b.full().shape) == 0; }
Graph finish_empty(NamedBuild& b) {
  return b.finish({b.map({b.operand(0)}, Ex::input(0), b.full(), b.dtype(), b.wide())});
}

/// The axes of the logits, then those that only the targets have.
Place each_loss(const NamedBuild& b) {
  Place each = b.rows();
  const Place of_targets = b.rows(b.operand(1).access);
  for (std::size_t d = 0; d < of_targets.access.size(); ++d) {
    if (uses(each.access, of_targets.access[d].terms[0].axis)) continue;
    each.access.push_back(of_targets.access[d]);
    each.shape.push_back(of_targets.shape[d]);
  }
  return each;
}

}  // namespace

Graph build_softmax(NamedBuild& b) {
  b.require_floating();
  if (is_empty(b)) return finish_empty(b);
  const Exponentials e = exponentials(b);
  return b.finish(
      {b.map({e.exp, e.sum}, Ex::input(0) / Ex::input(1), b.full(), b.dtype(), b.wide())});
}

Graph build_log_softmax(NamedBuild& b) {
  b.require_floating();
  if (is_empty(b)) return finish_empty(b);
  const Exponentials e = exponentials(b);
  const Ex formula = (Ex::input(0) - Ex::input(1)) - Ex::apply(ScalarOp::log, Ex::input(2));
  return b.finish({b.map({b.operand(0), e.max, e.sum}, formula, b.full(), b.dtype(), b.wide())});
}

Graph build_cross_entropy(NamedBuild& b) {
  b.require_floating();
  const NamedValue targets = b.positions(1);
  const Place each = each_loss(b);
  const Place result = b.call().pattern.has_arrow ? b.result() : Place{};
  const std::vector<Size> marked = b.marked_sizes();
  if (std::find(marked.begin(), marked.end(), 0) != marked.end() && numel(each.shape) > 0) {
    b.complain(ErrorKind::reduction, "there is no target among no elements", b.marks_of_brackets());
  }
  bool averages = false;
  std::vector<Size> averaged;  // losses for each result
  for (std::size_t d = 0; d < each.access.size(); ++d) {
    if (uses(result.access, each.access[d].terms[0].axis)) continue;
    averages = true;
    averaged.push_back(each.shape[d]);
  }
  const Place& place = averages ? each : result;
  const DType dtype = averages ? b.wide() : b.dtype();
  const NamedValue picked = b.gather(b.operand(0), targets, each, b.solved().axes, true);
  NamedValue loss;
  if (is_empty(b)) {
    loss = b.map({picked}, Ex::input(0), place, dtype, b.wide());
  } else {
    const Exponentials e = exponentials(b);
    const Ex formula = Ex::apply(ScalarOp::log, Ex::input(1)) - (Ex::input(2) - Ex::input(0));
    loss = b.map({e.max, e.sum, picked}, formula, place, dtype, b.wide());
  }
  if (!averages) return b.finish({loss});
  const NamedValue sum = b.reduce(Combine::sum, loss, result, b.wide());
  return b.finish({b.map({sum}, Ex::input(0) / points_of(averaged), result, b.dtype(), b.wide())});
}

}  // namespace ein
