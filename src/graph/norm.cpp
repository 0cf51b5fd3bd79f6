// layer_norm and rms_norm.
#include "graph/named.hpp"
#include "graph/squares.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

Ex square(const Ex& x) { return x * x; }

/// 1 / √(mean of the values + eps), for each row.
NamedValue inverse_root_mean(NamedBuild& b, const NamedValue& values) {
  const NamedValue sum = b.reduce(Combine::sum, values, b.rows(), b.wide());
  const Ex mean = Ex::input(0) / points_of(b.marked_sizes());
  return b.map({sum}, Ex::apply(ScalarOp::rsqrt, mean + b.call().named.eps), b.rows());
}

}  // namespace

NamedValue weight(const NamedBuild& b, std::size_t k, std::string_view what) {
  const Place place = b.marked();
  const OperandType& type = b.operand_type(k);
  if (!ask_equal(place.shape, type.shape)) {
    b.complain(ErrorKind::shape,
               std::string(what) + " has shape " + type.shape.to_string() +
                   ", the axes in brackets have " + place.shape.to_string(),
               b.marks_of_brackets());
  }
  require_no_wider(b, k, what);
  return {static_cast<ValueId>(k), place.access};
}

void require_no_wider(const NamedBuild& b, std::size_t k, std::string_view what) {
  const DType dtype = b.dtype(k);
  if (is_floating(dtype) && size_of(dtype) <= size_of(b.wide())) return;
  b.complain(ErrorKind::dtype,
             std::string(what) + " is " + std::string(name(dtype)) + ", operand 1 is " +
                 std::string(name(b.dtype())),
             {}, "cast one with .to(dtype)");
}

/// In two passes, so that a large mean costs the variance no digits: sums of deviations d from a
/// centre c near the mean, and of their squares, give the mean c + Σd / n and the variance
/// Σd² / n - (Σd / n)², whatever c is. Equal elements deviate by exactly 0 from that mean.
Graph build_layer_norm(NamedBuild& b) {
  b.require_floating();
  const NamedValue x = b.operand(0);
  const Ex count = points_of(b.marked_sizes()), first = Ex::input(0), second = Ex::input(1);
  const auto total = [&](const std::vector<NamedValue>& from, const Ex& formula) {
    return b.reduce(Combine::sum, b.map(from, formula, b.full()), b.rows(), b.wide());
  };
  const NamedValue centre = b.map({total({x}, first * Ex(sum_scale(b.wide())))},
                                  mean_of_scaled(first, count, b.wide()), b.rows());
  b.detach(centre);  // nothing depends on it
  const Ex deviation = first - second;
  const NamedValue sum = total({x, centre}, deviation),
                   squares = total({x, centre}, square(deviation));
  const NamedValue mean = b.map({centre, sum}, first + second / count, b.rows());
  const Ex variance = at_least_zero(first / count - square(second / count));
  const NamedValue scale = b.map(
      {squares, sum}, Ex::apply(ScalarOp::rsqrt, variance + Ex(b.call().named.eps)), b.rows());
  std::vector<NamedValue> inputs{x, mean, scale};
  Ex formula = deviation * Ex::input(2);
  if (b.operand_count() > 1) {
    inputs.push_back(weight(b, 1, "weight"));
    inputs.push_back(weight(b, 2, "bias"));
    formula = formula * Ex::input(3) + Ex::input(4);
  }
  return b.finish({b.map(inputs, formula, b.full(), b.dtype(), b.wide())});
}

Graph build_rms_norm(NamedBuild& b) {
  b.require_floating();
  const NamedValue x = b.operand(0);
  std::vector<NamedValue> inputs{x,
                                 inverse_root_mean(b, b.map({x}, square(Ex::input(0)), b.full()))};
  Ex formula = Ex::input(0) * Ex::input(1);
  if (b.operand_count() > 1) {
    inputs.push_back(weight(b, 1, "weight"));
    formula = formula * Ex::input(2);
  }
  return b.finish({b.map(inputs, formula, b.full(), b.dtype(), b.wide())});
}

}  // namespace ein
