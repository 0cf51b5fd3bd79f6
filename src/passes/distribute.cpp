#include "passes/distribute.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <ein/error.hpp>
#include "cost/exchange.hpp"
#include "graph/build.hpp"
#include "graph/op_kinds.hpp"
#include "graph/rewrite.hpp"
#include "passes/placement_classes.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"

namespace ein {
namespace {

using Split = Placement::Split;

std::uint32_t bit(int mesh_axis) { return std::uint32_t{1} << mesh_axis; }

class Distribution {
 public:
  Distribution(const std::string& call, const Graph& graph, std::span<const MeshAxis> mesh,
               std::span<const Placement> inputs, std::span<const std::optional<Placement>> outputs)
      : from_(graph), mesh_(mesh), classes_(call, graph, mesh, inputs, outputs) {}

  ProcessGraph run() {
    count_users();
    values_.resize(from_.ops.size());
    // The places of the process are the last inputs, but come before what reads them.
    for (std::size_t id = 0; id < from_.ops.size(); ++id) {
      const Op& op = from_.ops[id];
      if (op.kind != OpKind::input) continue;
      values_[id] = append(to_, {.kind = OpKind::input,
                                 .dtype = op.dtype,
                                 .shape = local_shape(op.shape, classes_.placement(id), mesh_)});
    }
    for (std::size_t m = 0; m < mesh_.size(); ++m)
      coordinates_.push_back(
          append(to_, {.kind = OpKind::input, .dtype = DType::i64, .shape = Shape()}));
    for (id_ = 0; id_ < from_.ops.size(); ++id_) {
      op_ = &from_.ops[id_];
      if (op_->kind != OpKind::input) values_[id_] = part_of(*op_);
    }
    move_results(from_, to_, values_);
    ProcessGraph result{without_dead_values(to_), {}};
    for (const ValueId output : from_.outputs)
      result.outputs.push_back(classes_.placement(static_cast<std::size_t>(output)));
    return result;
  }

 private:
  void count_users() {
    users_.assign(from_.ops.size(), 0);
    for (const Op& op : from_.ops) {
      for (const ValueId input : op.inputs) ++users_[static_cast<std::size_t>(input)];
    }
    for (const ValueId output : from_.outputs) ++users_[static_cast<std::size_t>(output)];
    for (const Assignment& a : from_.assignments) ++users_[static_cast<std::size_t>(a.value)];
  }

  /// With the marks of the operation at hand.
  ValueId add(Op op) {
    op.marks = op_->marks;
    return append(to_, std::move(op));
  }

  Split split_of_axis(std::size_t axis) const { return classes_.of_axis(id_, axis); }
  int processes_along(int m) const { return mesh_[static_cast<std::size_t>(m)].size; }
  /// The mesh axes along which there are several processes.
  std::uint32_t bits(const Split& split) const {
    return std::accumulate(
        split.begin(), split.end(), std::uint32_t{0},
        [this](std::uint32_t all, int m) { return processes_along(m) > 1 ? all | bit(m) : all; });
  }

  ValueId part_of(const Op& op) {
    switch (op.kind) {
      case OpKind::reshard:
        return resharded(op);
      case OpKind::map:
        return mapped(op);
      case OpKind::gather:
        if (!is_at_position(op) && !positions_split(op).empty()) return gathered(op);
        return plain(op);
      case OpKind::scatter:
        return combined(op, scattered(op));
      case OpKind::contract:
      case OpKind::reduce:
        return combined(op, local(op));
      default:
        return plain(op);
    }
  }

  /// The same on the sizes of one process.
  Op local(const Op& op) const {
    Op part = op;
    for (ValueId& input : part.inputs) input = values_[static_cast<std::size_t>(input)];
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      part.axes[a].size = op.axes[a].size / parts_of(split_of_axis(a), mesh_);
      for (const int m : split_of_axis(a)) part.axes[a].name += "/" + name_of(m);
    }
    part.shape = local_shape(op.shape, classes_.placement(id_), mesh_);
    for (std::size_t i = 0; i < part.reads.size(); ++i) rescale(part.reads[i], op.axes, part.axes);
    rescale(part.write, op.axes, part.axes);
    return part;
  }
  /// A composite dimension counts its axes in steps of the sizes behind them: of an axis of size 1
  /// before one that is split, too.
  static void rescale(Access& access, const std::vector<Axis>& whole,
                      const std::vector<Axis>& part) {
    for (DimIndex& dim : access) {
      if (dim.terms.size() < 2 || !always_equal(dim.offset, 0) || !extent_of(dim, whole)) continue;
      Size step = 1;
      for (std::size_t t = dim.terms.size(); t-- > 0;) {
        dim.terms[t].coefficient = step;
        step *= part[static_cast<std::size_t>(dim.terms[t].axis)].size;
      }
    }
  }
  ValueId plain(const Op& op) { return add(local(op)); }

  // --- names ---

  const std::string& name_of(int mesh_axis) const {
    return mesh_[static_cast<std::size_t>(mesh_axis)].name;
  }
  /// As the operation that makes a value calls its dimensions; "" where none does.
  std::vector<std::string> names_of(ValueId value) const {
    const Op& op = to_.op(value);
    std::vector<std::string> names(op.shape.rank());
    for (std::size_t d = 0; d < op.write.size(); ++d) {
      for (const DimIndex::Term& term : op.write[d].terms) {
        if (!names[d].empty()) names[d] += composite;
        names[d] += op.axes[static_cast<std::size_t>(term.axis)].name;
      }
    }
    return names;
  }
  static void set_names(Op& op, const std::vector<std::string>& names, std::size_t first = 0) {
    for (std::size_t d = 0; d < names.size(); ++d) op.axes[first + d].name = names[d];
  }

  // --- sums ---

  /// The operation on the parts, and its results of all processes combined.
  ValueId combined(const Op& op, Op part) {
    std::uint32_t over = 0;
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      if (!is_kept(op, static_cast<int>(a))) over |= bits(split_of_axis(a));
    }
    // Narrow floats are rounded once, when all parts are summed.
    const bool is_narrow = over != 0 && op.kind != OpKind::scatter && is_floating(op.dtype) &&
                           size_of(op.dtype) < size_of(DType::f32);
    if (is_narrow) part.dtype = DType::f32;
    const ValueId partial = add(std::move(part));
    if (over == 0) return partial;
    const ValueId sum = all_reduced(partial, over, combination_of(op));
    return is_narrow ? converted(sum, op.dtype) : sum;
  }

  // --- positions ---

  /// The first position of this process's part of an axis that has `size` positions here, as an
  /// i64.
  ValueId first_position(const Split& split, Size size) {
    Op op = plain_op(OpKind::map, DType::i64, Shape());
    op.compute = DType::i64;
    Ex first = Ex::integer(0);
    Size step = size;
    for (std::size_t s = split.size(); s-- > 0;) {
      const auto m = static_cast<std::size_t>(split[s]);
      const int input = static_cast<int>(op.inputs.size());
      op.inputs.push_back(coordinates_[m]);
      op.reads.emplace_back();
      first = first + Ex::input(input) * Ex::size(step);
      step *= mesh_[m].size;
    }
    op.expr = first;
    return add(std::move(op));
  }

  ValueId mapped(const Op& op) {
    Op part = local(op);
    std::vector<ScalarStep> steps;
    std::vector<int> place;
    const auto push = [&](const ScalarStep& step) {
      steps.push_back(step);
      return static_cast<int>(steps.size()) - 1;
    };
    const auto read = [&](ValueId value, Access access) {
      part.inputs.push_back(value);
      part.reads.push_back(std::move(access));
      return push({.op = ScalarOp::input, .which = static_cast<int>(part.inputs.size()) - 1});
    };
    for (ScalarStep step : op.expr.steps) {
      step.move_arguments(place);
      const bool is_random = step.op == ScalarOp::uniform || step.op == ScalarOp::normal;
      const auto axis = static_cast<std::size_t>(step.which);
      if (step.op == ScalarOp::index && !split_of_axis(axis).empty()) {
        const int here = push(step);
        const int first = read(first_position(split_of_axis(axis), part.axes[axis].size), {});
        place.push_back(push({.op = ScalarOp::add, .args = {here, first, -1}}));
      } else if (is_random && !classes_.placement(id_).is_whole()) {
        place.push_back(read(drawn(op, step), part.write));
      } else {
        place.push_back(push(step));
      }
    }
    part.expr.steps = std::move(steps);
    return add(std::move(part));
  }

  /// This process's part of the random numbers of the whole, each by its position there.
  ValueId drawn(const Op& op, const ScalarStep& step) {
    Op part = local(op);
    part.inputs.clear();
    part.reads.clear();
    part.dtype = op.compute;
    part.compute = DType::f64;
    std::vector<Ex> index;  // in the whole, of each axis
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      index.push_back(Ex::index(static_cast<int>(a)));
      if (split_of_axis(a).empty()) continue;
      part.inputs.push_back(first_position(split_of_axis(a), part.axes[a].size));
      part.reads.emplace_back();
      index.back() = index.back() + Ex::input(static_cast<int>(part.inputs.size()) - 1);
    }
    Ex position = Ex::integer(0);
    for (std::size_t d = 0; d < op.shape.rank(); ++d) {
      Ex in_dim = Ex::size(op.write[d].offset);
      for (const DimIndex::Term& term : op.write[d].terms)
        in_dim = in_dim + index[static_cast<std::size_t>(term.axis)] * Ex::size(term.coefficient);
      position = position * Ex::size(op.shape[d]) + in_dim;
    }
    part.expr = Ex::random_at(step, position).expr();
    return add(std::move(part));
  }

  /// How the dimension along which positions choose is split.
  Split positions_split(const Op& op) const {
    const auto dim = static_cast<std::size_t>(op.dim);
    return op.kind == OpKind::gather ? classes_.of_dim(op.inputs[0], dim)
                                     : classes_.of_dim(static_cast<ValueId>(id_), dim);
  }

  /// For each position the one here, or 0 if another process has it. One that no process has stays
  /// outside.
  struct Here {
    Op positions;
    Ex is_here;  // of input 0, the position, and input 1, the first here
  };
  static Ex is_here(const Ex& offset, Size size) {
    const Ex zero = Ex::integer(0);
    return Ex::apply(ScalarOp::mul, Ex::apply(ScalarOp::ge, offset, zero),
                     Ex::apply(ScalarOp::lt, offset, Ex::size(size)));
  }
  /// Positions of the whole as positions here.
  ValueId positions_here(ValueId positions, ValueId first, Size size, std::int64_t parts) {
    const Shape shape = to_.op(positions).shape;
    Op op = plain_op(OpKind::map, DType::i64, shape);
    op.compute = DType::i64;
    op.inputs = {positions, first};
    op.reads = {op.write, {}};
    const Ex position = Ex::input(0), offset = position - Ex::input(1);
    const Ex exists = Ex::apply(ScalarOp::mul, Ex::apply(ScalarOp::ge, position, Ex::integer(0)),
                                Ex::apply(ScalarOp::lt, position, Ex::size(size * parts)));
    op.expr = where(is_here(offset, size), offset, where(exists, Ex::integer(0), position));
    return add(std::move(op));
  }

  /// The values of `op`, at its axes, where the position is here, else 0.
  ValueId masked(const Op& op, ValueId values, const Access& read, ValueId positions, ValueId first,
                 Size size) {
    const Access& at = op.reads.back();
    Op result{.kind = OpKind::map, .dtype = to_.op(values).dtype, .shape = to_.op(values).shape};
    result.axes = local(op).axes;
    result.write = read;
    // Whether a position is here, in integers; the values in their own type.
    Op mask = plain_op(OpKind::map, DType::boolean, to_.op(positions).shape);
    mask.compute = DType::i64;
    mask.inputs = {positions, first};
    mask.reads = {mask.write, {}};
    mask.expr = is_here(Ex::input(0) - Ex::input(1), size);
    result.inputs = {values, add(std::move(mask))};
    result.reads = {read, at};
    result.compute = compute_type(result.dtype);
    // -0 changes no sign of what it is added to.
    const Ex zero = is_floating(result.compute) ? Ex(-0.0) : Ex::integer(0);
    result.expr = where(Ex::input(1), Ex::input(0), zero);
    drop_unused_axes(result);
    return add(std::move(result));
  }

  /// Elements of a split dimension: each comes from the one process that has it.
  ValueId gathered(const Op& op) {
    const Split split = positions_split(op);
    Op part = local(op);
    const ValueId positions = part.inputs[1];
    const Size size = to_.op(part.inputs[0]).shape[static_cast<std::size_t>(op.dim)];
    const ValueId first = first_position(split, size);
    part.parts = parts_of(split, mesh_);
    part.inputs[1] = positions_here(positions, first, size, part.parts);
    const ValueId found = add(part);
    const ValueId own = masked(op, found, op.write, positions, first, size);
    return all_reduced(own, bits(split), Combine::sum);
  }

  /// Each process takes what goes to its part of the dimension.
  Op scattered(const Op& op) {
    Op part = local(op);
    const Split split = positions_split(op);
    if (split.empty()) return part;
    const Size size = part.shape[static_cast<std::size_t>(op.dim)];
    const ValueId first = first_position(split, size), positions = part.inputs[1];
    part.parts = parts_of(split, mesh_);
    part.inputs[1] = positions_here(positions, first, size, part.parts);
    part.inputs[0] = masked(op, part.inputs[0], op.reads[0], positions, first, size);
    return part;
  }

  // --- resharding ---

  ValueId resharded(const Op& op) {
    const auto input = static_cast<std::size_t>(op.inputs[0]);
    ValueId value = values_[input];
    bool may_scatter = users_[input] == 1;
    Placement now = op.from, goal = op.to;
    const std::size_t rank = op.shape.rank();
    now.dims.resize(rank);
    goal.dims.resize(rank);
    for (std::size_t d = 0; d < rank; ++d) {
      if (goal.dims[d] == Placement::same())
        now.dims[d] = goal.dims[d] = classes_.of_dim(op.inputs[0], d);
    }
    const auto is_prefix = [&](std::size_t d) {
      return now.dims[d].size() <= goal.dims[d].size() &&
             std::equal(now.dims[d].begin(), now.dims[d].end(), goal.dims[d].begin());
    };
    const auto is_used = [&](int m) {
      return std::any_of(now.dims.begin(), now.dims.end(), [&](const Split& split) {
        return std::find(split.begin(), split.end(), m) != split.end();
      });
    };
    /// The mesh axis that would split a dimension next; -1 if none would.
    const auto next = [&](std::size_t d) {
      return is_prefix(d) && now.dims[d].size() < goal.dims[d].size()
                 ? goal.dims[d][now.dims[d].size()]
                 : -1;
    };
    // First what makes parts smaller, then what keeps their size, then what makes them larger.
    for (bool moved = true; moved; may_scatter = false) {
      moved = false;
      for (std::size_t d = 0; d < rank && !moved; ++d) {
        const int m = next(d);
        if (m < 0 || is_used(m)) continue;
        if (processes_along(m) > 1)
          value = may_scatter ? sliced_sum(value, d, m) : sliced(value, d, m);
        now.dims[d].push_back(m);
        moved = true;
      }
      for (std::size_t d = 0; d < rank && !moved; ++d) {
        if (is_prefix(d)) continue;
        for (std::size_t other = 0; other < rank && !moved; ++other) {
          if (next(other) != now.dims[d].back()) continue;
          if (processes_along(now.dims[d].back()) > 1)
            value = exchanged(value, d, other, now.dims[d].back());
          now.dims[other].push_back(now.dims[d].back());
          now.dims[d].pop_back();
          moved = true;
        }
      }
      for (std::size_t d = 0; d < rank && !moved; ++d) {
        if (is_prefix(d)) continue;
        if (processes_along(now.dims[d].back()) > 1) value = joined(value, d, now.dims[d].back());
        now.dims[d].pop_back();
        moved = true;
      }
    }
    return value;
  }

  /// The part of dimension `d` that is this process's along a mesh axis.
  ValueId sliced(ValueId value, std::size_t d, int m) {
    const Shape whole = to_.op(value).shape;
    Shape shape = whole;
    shape[d] /= processes_along(m);
    Op op = plain_op(OpKind::gather, to_.op(value).dtype, shape);
    op.inputs = {value, first_position({m}, shape[d])};
    op.reads = {op.write, {}};
    op.dim = static_cast<int>(d);
    set_names(op, names_of(value));
    op.axes[d].name += "/" + name_of(m);
    return add(std::move(op));
  }

  /// Dimension `d` cut in as many parts as there are processes along a mesh axis, the parts first.
  ValueId cut(ValueId value, std::size_t d, int m) {
    const Shape whole = to_.op(value).shape;
    Shape shape{processes_along(m)};
    for (const Size size : whole) shape.push_back(size);
    shape[d + 1] /= processes_along(m);
    Op op = plain_op(OpKind::reindex, to_.op(value).dtype, shape);
    op.inputs = {value};
    Access read = plain_access(whole.rank(), 1);
    read[d].terms.insert(read[d].terms.begin(), {0, shape[d + 1]});
    op.reads = {std::move(read)};
    set_names(op, names_of(value), 1);
    op.axes[0].name = name_of(m);
    op.axes[d + 1].name += "/" + name_of(m);
    return add(std::move(op));
  }
  /// And back.
  ValueId uncut(ValueId value, std::size_t d) {
    const Shape parts = to_.op(value).shape;
    Op op = plain_op(OpKind::reindex, to_.op(value).dtype, parts);
    op.inputs = {value};
    op.reads = {op.write};
    set_names(op, names_of(value));
    Access write = plain_access(parts.rank() - 1, 1);
    write[d].terms.insert(write[d].terms.begin(), {0, parts[d + 1]});
    op.write = std::move(write);
    op.shape = shape_of(op.write, op.axes);
    return add(std::move(op));
  }

  /// A collective over one mesh axis whose operand or result has a first dimension of processes.
  ValueId collective(Collective kind, ValueId value, int m, Combine combine = Combine::sum) {
    const Op& from = to_.op(value);
    const bool reads_all = kind != Collective::all_gather,
               writes_all = kind != Collective::reduce_scatter;
    Shape all;
    if (!reads_all) all.push_back(processes_along(m));
    for (const Size size : from.shape) all.push_back(size);
    Op op = plain_op(OpKind::collective, from.dtype, all);
    const Access of_each = plain_access(all.rank() - 1, 1);
    op.axes[0].name = name_of(m);
    set_names(op, names_of(value), reads_all ? 0 : 1);
    op.inputs = {value};
    op.reads = {reads_all ? op.write : of_each};
    if (!writes_all) {
      op.write = of_each;
      op.shape = shape_of(of_each, op.axes);
    }
    op.collective = kind;
    op.mesh_axes = bit(m);
    op.combine = combine;
    return add(std::move(op));
  }

  ValueId joined(ValueId value, std::size_t d, int m) {
    return uncut(collective(Collective::all_gather, value, m), d);
  }
  /// A mesh axis leaves dimension `from` and splits dimension `to`.
  ValueId exchanged(ValueId value, std::size_t from, std::size_t to, int m) {
    return uncut(collective(Collective::all_to_all, cut(value, to, m), m), from);
  }
  /// A slice; of a sum over that mesh axis, the part of the sum.
  ValueId sliced_sum(ValueId value, std::size_t d, int m) {
    const Op last = to_.op(value);  // the sum, or what rounds it
    const bool rounds = last.kind == OpKind::map && last.expr.is_input() && last.inputs.size() == 1;
    const Op sum = rounds ? to_.op(last.inputs[0]) : last;
    if (sum.kind != OpKind::collective || sum.collective != Collective::all_reduce ||
        !(sum.mesh_axes & bit(m)))
      return sliced(value, d, m);
    const ValueId parts = cut(sum.inputs[0], d, m);
    ValueId part = collective(Collective::reduce_scatter, parts, m, sum.combine);
    if (sum.mesh_axes != bit(m)) part = all_reduced(part, sum.mesh_axes & ~bit(m), sum.combine);
    return rounds ? converted(part, last.dtype) : part;
  }
  ValueId all_reduced(ValueId value, std::uint32_t mesh_axes, Combine combine) {
    if (mesh_axes == 0) return value;
    Op op = plain_op(OpKind::collective, to_.op(value).dtype, to_.op(value).shape);
    set_names(op, names_of(value));
    op.inputs = {value};
    op.reads = {op.write};
    op.collective = Collective::all_reduce;
    op.mesh_axes = mesh_axes;
    op.combine = combine;
    return add(std::move(op));
  }
  ValueId converted(ValueId value, DType dtype) {
    Op op = plain_op(OpKind::map, dtype, to_.op(value).shape);
    set_names(op, names_of(value));
    op.inputs = {value};
    op.reads = {op.write};
    op.expr = Ex::input(0);
    return add(std::move(op));
  }

  const Graph& from_;
  std::span<const MeshAxis> mesh_;
  PlacementClasses classes_;
  Graph to_;
  std::vector<ValueId> values_;  // of each value of from_
  std::vector<ValueId> coordinates_;
  std::vector<int> users_;  // of each value of from_
  std::size_t id_ = 0;      // of the operation at hand
  const Op* op_ = nullptr;
};

}  // namespace

ProcessGraph distribute(const std::string& call, const Graph& graph, std::span<const MeshAxis> mesh,
                        std::span<const Placement> inputs,
                        std::span<const std::optional<Placement>> outputs) {
  ProcessGraph result = Distribution(call, graph, mesh, inputs, outputs).run();
  verify(result.graph);
  return result;
}

std::string to_string(const Placement& placement, std::span<const MeshAxis> mesh, std::size_t rank,
                      std::span<const std::string> names) {
  std::string text;
  for (std::size_t d = 0; d < rank; ++d) {
    std::string dim = d < names.size() ? names[d] : "i" + std::to_string(d);
    std::string split;
    for (const int m : placement.split(d)) split += "@" + mesh[static_cast<std::size_t>(m)].name;
    // Of a composite one the outermost axis is placed.
    dim.insert(dim.starts_with('(') ? dim.find_first_of(" )") : dim.size(), split);
    text += (d > 0 ? " " : "") + dim;
  }
  return text;
}

std::int64_t parts_of(const Split& split, std::span<const MeshAxis> mesh) {
  std::int64_t parts = 1;
  for (const int m : split) parts *= mesh[static_cast<std::size_t>(m)].size;
  return parts;
}

Shape local_shape(const Shape& shape, const Placement& placement, std::span<const MeshAxis> mesh) {
  Shape local = shape;
  for (std::size_t d = 0; d < shape.rank(); ++d) local[d] /= parts_of(placement.split(d), mesh);
  return local;
}

}  // namespace ein
