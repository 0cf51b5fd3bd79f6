#include "passes/add_axis.hpp"

#include <algorithm>
#include <string>

#include <ein/error.hpp>
#include "graph/build.hpp"
#include "graph/op_kinds.hpp"
#include "nest/nest.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

class AddAxis {
 public:
  AddAxis(const Graph& from, const Axis& axis, bool draws_for_each)
      : from_(from), axis_(axis), draws_for_each_(draws_for_each) {}

  Graph run(const std::vector<bool>& have_it) {
    std::size_t input = 0;
    for (const Op& op : from_.ops) {
      const bool has_it =
          op.kind == OpKind::input
              ? have_it[input++]
              : (draws_for_each_ && op.kind == OpKind::map && draws(op.expr)) || any_input_has(op);
      has_it_.push_back(has_it);
      moved_.push_back(append(to_, has_it ? longer(op) : same(op)));
    }
    for (const ValueId output : from_.outputs) to_.outputs.push_back(with_it(output));
    verify(to_);
    return std::move(to_);
  }

 private:
  bool has(ValueId id) const { return has_it_[static_cast<std::size_t>(id)]; }
  ValueId moved(ValueId id) const { return moved_[static_cast<std::size_t>(id)]; }
  bool any_input_has(const Op& op) const {
    return std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) { return has(id); });
  }

  Op same(const Op& op) const {
    Op copy = op;
    for (ValueId& id : copy.inputs) id = moved(id);
    return copy;
  }

  /// Axis 0, before all others.
  Op longer(const Op& op) {
    Op copy = op;
    copy.shape = longer(op.shape);
    if (op.kind == OpKind::input) return copy;
    if (op.kind == OpKind::concat) {
      for (ValueId& id : copy.inputs) id = with_it(id);
      ++copy.dim;
      return copy;
    }
    copy.axes.insert(copy.axes.begin(), axis_);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      // What is written to, and matrices, have it as the result does.
      const bool must_have_it = op.kind == OpKind::matrix || (op.kind == OpKind::place && i == 1);
      const bool has_it = has(op.inputs[i]) || must_have_it;
      copy.inputs[i] = must_have_it ? with_it(op.inputs[i]) : moved(op.inputs[i]);
      copy.reads[i] = longer(op.reads[i], has_it);
    }
    copy.write = longer(op.write, true);
    for (ScalarStep& step : copy.expr.steps) {
      if (step.op == ScalarOp::index) ++step.which;
    }
    ++copy.axis;
    if (info(op.kind).positions != OpKindInfo::no_positions) {
      require_one_position(op);
      if (!reads_at_positions(op) || has(op.inputs[0])) ++copy.dim;
    }
    if (op.kind == OpKind::matrix) copy.roles.insert(copy.roles.begin(), MatrixAxis::batch);
    if (op.kind == OpKind::reshard) {
      for (Placement* side : {&copy.from, &copy.to})
        side->dims.insert(side->dims.begin(), Placement::Split{});
    }
    if (op.kind == OpKind::collective) refuse(op, "it exchanges values between processes");
    return copy;
  }

  Shape longer(const Shape& shape) const {
    Shape longer{axis_.size};
    for (const Size size : shape) longer.push_back(size);
    return longer;
  }
  static Access longer(const Access& access, bool has_it) {
    Access longer;
    if (has_it) longer.push_back({0, {{0, 1}}});
    for (DimIndex dim : access) {
      for (DimIndex::Term& term : dim.terms) ++term.axis;
      longer.push_back(std::move(dim));
    }
    return longer;
  }

  /// A slice whose position is the same for all.
  void require_one_position(const Op& op) const {
    if (is_at_position(op) && has(op.inputs.back()))
      refuse(op, "the position of a slice depends on it\n  help: gather takes positions");
  }
  [[noreturn]] void refuse(const Op& op, const std::string& why) const {
    throw Error(ErrorKind::value, "vmap: operation " + std::string(name(op.kind)) +
                                      " can't be done along axis '" + axis_.name + "': " + why);
  }

  /// A value with the axis: repeated along it, if it does not depend on it.
  ValueId with_it(ValueId id) {
    if (has(id)) return moved(id);
    const Shape& shape = from_.op(id).shape;
    Op repeat = plain_op(OpKind::reindex, from_.op(id).dtype, longer(shape));
    repeat.axes.front().name = axis_.name;
    repeat.inputs = {moved(id)};
    repeat.reads = {plain_access(shape.rank(), 1)};
    repeat.marks = from_.op(id).marks;
    return append(to_, std::move(repeat));
  }

  const Graph& from_;
  const Axis& axis_;
  const bool draws_for_each_;
  Graph to_;
  std::vector<char> has_it_;
  std::vector<ValueId> moved_;
};

}  // namespace

Graph with_axis(const Graph& graph, const std::vector<bool>& have_it, const Axis& axis,
                bool draws_for_each) {
  return AddAxis(graph, axis, draws_for_each).run(have_it);
}

}  // namespace ein
