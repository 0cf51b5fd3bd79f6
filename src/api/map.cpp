// map: a function of elements that meet by the names of axes, maybe reduced.
#include <ein/map.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ein/error.hpp>
#include "graph/build.hpp"
#include "graph/fields.hpp"
#include "graph/reductions.hpp"
#include "graph/solve.hpp"
#include "runtime/autocast.hpp"
#include "runtime/call.hpp"
#include "runtime/call_pattern.hpp"
#include "runtime/map.hpp"
#include "runtime/mesh.hpp"
#include "runtime/recorded_call.hpp"
#include "tensor/compute_type.hpp"

namespace ein {
namespace {

using engine::PlanKey;

/// A call on operands of these shapes.
class Map {
 public:
  Map(const detail::MapCall& call, engine::Operands operands)
      : call_(call),
        op_(call.reduction ? Operation::map_reduce : Operation::map),
        parsed_(op_, call.pattern, call.sizes, shapes_of(operands)) {
    require_valid({.op = op_,
                   .pattern = parsed_.pattern,
                   .sizes = call.sizes,
                   .is_checked = call.pattern.is_checked()},
                  operands.size());
    shapes_ = shapes_of(operands);
    solved_ = solve(op_, parsed_.pattern, shapes_, call.sizes);
    checked_numel(solved_.shape, 8);
    if (solved_.has_braces) take_windows();
    order_axes();
    for (const int axis : axes_)
      points_.push_back(solved_.axes[static_cast<std::size_t>(axis)].size);
    checked_numel(points_, 1);
  }

  const grammar::Pattern& pattern() const { return parsed_.pattern; }
  std::string what() const {
    return "map \"" + std::string(call_.pattern.text()) + "\"" +
           (call_.reduction ? " " + std::string(name(*call_.reduction)) : "");
  }

  Tensor operator()(std::span<const Tensor> operands) const {
    std::vector<Tensor> points;
    for (std::size_t k = 0; k < operands.size(); ++k) points.push_back(at_points(operands[k], k));
    if (is_reduced_one_by_one() && takes_points_one_by_one(points)) return one_by_one(points);
    return from_points(value_at(points));
  }

 private:
  Tensor value_at(std::span<const Tensor> points) const {
    Tensor value = std::move(call_.function(call_.context, points).front());
    require_points(value.shape());
    return value;
  }

  /// A sum of so few values that it is a formula of them, which those who read it can compute: so a
  /// function of it over all pairs of points reaches no memory either.
  bool is_reduced_one_by_one() const {
    constexpr std::int64_t most = 4;
    // Along an axis that is split, parts can't be taken.
    if (call_.reduction != Reduction::sum || parsed_.pattern.has_placements() || !bounds_.empty() ||
        !covers(solved_.write, solved_.shape, solved_.axes) || engine::Trace::active()->mesh())
      return false;
    std::int64_t values = 1;
    for (std::size_t d = result_axes(); d < axes_.size(); ++d) {
      if (!points_[d].is_number() || points_[d] > most) return false;
      values *= points_[d];
    }
    return values >= 1 && values <= most;
  }
  /// Whether f at a point that is reduced depends on nothing but its operands there.
  bool takes_points_one_by_one(std::span<const Tensor> points) const {
    const auto recorded = [&](std::span<const Tensor> at) {
      std::vector<const Tensor*> operands;
      for (const Tensor& x : at) operands.push_back(&x);
      return engine::record_call(engine::Trace::Of::map, operands, [&](std::span<const Tensor> x) {
        return call_.function(call_.context, x);
      });
    };
    const engine::RecordedCall f = recorded(points);
    const std::size_t reduced = axes_.size() - result_axes();
    // Numbers may be those of shapes.
    const engine::RecordedCall first =
        recorded(at_place(points, std::vector<std::int64_t>(reduced)));
    const auto same = [](const Op& a, const Op& b) {
      return a.kind == b.kind && equal_fields(a.expr, b.expr);
    };
    return std::equal(f.graph.ops.begin(), f.graph.ops.end(), first.graph.ops.begin(),
                      first.graph.ops.end(), same) &&
           std::all_of(f.graph.ops.begin(), f.graph.ops.end(),
                       [](const Op& op) {
                         return op.kind == OpKind::input ||
                                (op.kind == OpKind::map && !asks_index(op.expr));
                       }) &&
           std::all_of(f.captured.begin(), f.captured.end(), [&](const Tensor& x) {
             for (std::size_t d = 0; d < std::min(reduced, x.rank()); ++d) {
               if (!is_one(x.shape()[x.rank() - 1 - d])) return false;
             }
             return true;
           });
  }
  /// The operands at one place of the axes that are reduced.
  std::vector<Tensor> at_place(std::span<const Tensor> points,
                               const std::vector<std::int64_t>& at) const {
    const std::size_t kept = axes_.size() - at.size();
    std::vector<Index> index(axes_.size(), every);
    std::vector<Tensor> here;
    for (const Tensor& x : points) {
      for (std::size_t d = kept; d < axes_.size(); ++d) {
        const std::int64_t place = is_one(x.shape()[d]) ? 0 : at[d - kept];
        index[d] = slice(place, place + 1);
      }
      here.push_back(x.at(index));
    }
    return here;
  }
  std::size_t result_axes() const {
    return static_cast<std::size_t>(std::count_if(
        axes_.begin(), axes_.end(), [&](int axis) { return uses(solved_.write, axis); }));
  }

  Tensor one_by_one(std::span<const Tensor> points) const {
    const std::size_t kept = result_axes();
    std::optional<Tensor> all;
    DType dtype{};
    std::vector<std::int64_t> at(axes_.size() - kept, 0);
    for (bool is_there = true; is_there;) {
      const std::vector<Tensor> here = at_place(points, at);
      const Tensor value = value_at(here);
      if (!all) dtype = result_dtype(value.dtype());
      // In a type in which a sum is rounded once, at the end.
      const DType combined = dtype_to_combine(value.dtype(), dtype);
      const Tensor term = value.to(is_floating(combined) ? compute_type(combined) : combined);
      // As with other sums, 0.0 of nothing but -0.0.
      all = all ? *all + term : is_floating(term.dtype()) ? term + 0.0 : term;
      is_there = false;
      for (std::size_t d = at.size(); d-- > 0 && !is_there;) {
        is_there = ++at[d] < points_[kept + d];
        if (!is_there) at[d] = 0;
      }
    }
    return arranged(all->to(dtype));
  }

  /// The dimensions that are read beside their operands: a point is one that all of them have.
  void take_windows() {
    for (std::size_t k = 0; k < shapes_.size(); ++k) {
      for (std::size_t d = 0; d < shapes_[k].rank(); ++d) {
        const DimIndex& dim = solved_.reads[k][d];
        if (!stays_inside({dim}, {shapes_[k][d]}, solved_.axes))
          bounds_.push_back({dim, shapes_[k][d]});
      }
    }
    const auto refuse = [&](const grammar::Side& side, const std::string& message,
                            const std::string& help) {
      fail(ErrorKind::pattern, "map", message, parsed_.pattern.text,
           mark_dims(parsed_.pattern, side), {show_operands(shapes_), "help: " + help});
    };
    const bool meets = !covers(solved_.write, solved_.shape, solved_.axes);
    if (meets && call_.reduction != Reduction::sum)
      refuse(parsed_.pattern.output(), "braces of the output add up what meets",
             "say \"sum\" after the function");
    if (!bounds_.empty() && !call_.reduction)
      refuse(parsed_.pattern.sides[0], "a result has points that an operand lacks",
             "say a reduction after the function, which leaves them out, or pad the operand");
    if (!bounds_.empty() && call_.reduction && is_variance(*call_.reduction))
      refuse(parsed_.pattern.sides[0],
             std::string(name(*call_.reduction)) + " reads beside its operands", "pad them first");
  }
  /// Whether a point of all axes, which a map goes over, is one that all operands have.
  Ex is_inside() const {
    std::optional<Ex> all;
    const auto also = [&](const Ex& condition) {
      all = all ? Ex::apply(ScalarOp::logical_and, *all, condition) : condition;
    };
    for (const Bound& bound : bounds_) {
      Ex position = Ex::size(bound.dim.offset);
      for (const DimIndex::Term& term : bound.dim.terms) {
        const auto place = std::find(axes_.begin(), axes_.end(), term.axis) - axes_.begin();
        position = position + Ex::size(term.coefficient) * Ex::index(static_cast<int>(place));
      }
      also(Ex::apply(ScalarOp::ge, position, Ex(0.0)));
      also(Ex::apply(ScalarOp::lt, position, Ex::size(bound.length)));
    }
    return *all;
  }
  /// Values at all points, `otherwise` at those that an operand lacks; without a value, 1 at the
  /// others.
  ValueId only_inside(Graph& graph, std::optional<ValueId> value, DType dtype,
                      const Ex& otherwise) const {
    Op op = plain_op(OpKind::map, dtype, points_);
    if (value) {
      op.inputs = {*value};
      op.reads = {op.write};
    }
    op.compute = compute_type(dtype);
    op.expr = where(is_inside(), value ? Ex::input(0) : Ex(1.0), otherwise);
    return append(graph, std::move(op));
  }

  /// Those of the result, then those that it lacks, as the pattern has them.
  void order_axes() {
    const auto take = [&](const Access& access) {
      for (const DimIndex& dim : access) {
        for (const DimIndex::Term& term : dim.terms) {
          if (std::find(axes_.begin(), axes_.end(), term.axis) == axes_.end())
            axes_.push_back(term.axis);
        }
      }
    };
    take(solved_.write);
    for (const Access& read : solved_.reads) take(read);
  }

  /// A dimension for each axis; of size 1 for those that `has` denies.
  template <class Has>
  Place place_of(const Has& has) const {
    Place place;
    for (std::size_t d = 0; d < axes_.size(); ++d) {
      const bool is_there = has(d);
      place.access.push_back(is_there ? DimIndex{0, {{axes_[d], 1}}} : DimIndex{});
      place.shape.push_back(is_there ? points_[d] : Size(1));
    }
    return place;
  }

  PlanKey key_of(engine::KeyKind kind, std::int64_t number) const {
    PlanKey key;
    add(key, kind);
    key.add(number);
    key.add(call_.pattern, call_.sizes);
    key.add(points_);
    if (!bounds_.empty()) {
      for (const Shape& shape : shapes_) key.add(shape);
    }
    return key;
  }
  template <class Build>
  Tensor run(PlanKey key, const Tensor& x, const Build& build) const {
    const Tensor* const operand = &x;
    const auto graph_of = [&] {
      Graph graph;
      append(graph, {.kind = OpKind::input, .dtype = x.dtype(), .shape = x.shape()});
      graph.outputs = {build(graph)};
      verify(graph);
      return graph;
    };
    const engine::Operands operands(&operand, 1);
    const auto plan = engine::plan_for(
        key, operands, [&] { return what(); }, graph_of);
    return std::move(engine::run(*plan, operands).front());
  }

  Tensor at_points(const Tensor& operand, std::size_t k) const {
    const Access& read = solved_.reads[k];
    return run(
        key_of(engine::KeyKind::points, static_cast<std::int64_t>(k)), operand, [&](Graph& graph) {
          const Place place = place_of([&](std::size_t d) { return uses(read, axes_[d]); });
          Access inside = read;
          const ValueId from = solved_.has_braces ? padded(graph, 0, inside, solved_.axes) : 0;
          return rearranged(graph, from, inside, place);
        });
  }
  ValueId rearranged(Graph& graph, ValueId from, const Access& read, const Place& place) const {
    Op op = op_of(OpKind::reindex, {{from, read}}, place, graph.op(from).dtype);
    op.axes = solved_.axes;
    drop_unused_axes(op);
    return append(graph, std::move(op));
  }

  void require_points(const Shape& shape) const {
    bool fits = shape.rank() <= points_.rank();
    for (std::size_t d = 0; fits && d < shape.rank(); ++d) {
      const Size size = shape[shape.rank() - 1 - d];
      fits = size == 1 || size == points_[points_.rank() - 1 - d];
    }
    if (fits) return;
    std::string axes;
    for (const int axis : axes_)
      axes += (axes.empty() ? "" : " ") + solved_.axes[static_cast<std::size_t>(axis)].name;
    throw Error(ErrorKind::shape, what() + ": the function makes shape " + shape.to_string() +
                                      ", which does not broadcast to that of the points, " +
                                      points_.to_string() + " along \"" + axes + "\"");
  }

  /// As the pattern has the result, which a value of all points, or of those that are left, is.
  Tensor arranged(const Tensor& value) const {
    return run(key_of(engine::KeyKind::points, -1), value, [&](Graph& graph) {
      const std::size_t missing = points_.rank() - value.rank();
      const Place lies = place_of([&](std::size_t d) {
        return d >= missing && value.shape()[d - missing] == points_[d] &&
               uses(solved_.write, axes_[d]);
      });
      const Access read(lies.access.begin() + static_cast<std::ptrdiff_t>(missing),
                        lies.access.end());
      return rearranged(graph, 0, read, {solved_.write, solved_.shape});
    });
  }

  DType result_dtype(DType value) const {
    return call_.dtype.value_or(ein::result_dtype(
        *call_.reduction,
        *call_.reduction == Reduction::sum ? engine::autocast_sum_type(value) : value));
  }

  Tensor from_points(const Tensor& value) const {
    if (!call_.reduction) return arranged(call_.dtype ? value.to(*call_.dtype) : value);
    const Reduction reduction = *call_.reduction;
    const Tensor* const given = &value;
    const engine::AutocastOperands cast(Operation::reduce, reduction, {&given, 1});
    // An axis along which the value is one for all points counts each of them.
    const Tensor& cast_value = *cast.operands()[0];
    const Tensor all =
        cast_value.shape() == points_ ? cast_value : engine::broadcast(cast_value, points_);
    const DType dtype = result_dtype(all.dtype());
    Solved at = solved_;
    at.reads = {place_of([](std::size_t) { return true; }).access};
    require_defined(reduction, all.dtype(), at, parsed_.pattern, points_);
    const auto number =
        static_cast<std::int64_t>(reduction) << 8 | static_cast<std::int64_t>(dtype);
    return run(key_of(engine::KeyKind::reduced_points, number), all, [&](Graph& graph) {
      const DType combined = dtype_to_combine(all.dtype(), dtype);
      const ValueId reduced = bounds_.empty() ? build_reduction(graph, reduction, at, 0, combined)
                                              : reduce_inside(graph, reduction, at, combined);
      return converted(graph, reduced, dtype);
    });
  }

  /// A reduction of value 0 over the points that all operands have.
  ValueId reduce_inside(Graph& graph, Reduction reduction, const Solved& at, DType dtype) const {
    const DType of = graph.op(0).dtype;
    if (reduction != Reduction::mean) {
      const ValueId inside = only_inside(graph, 0, of, nothing_beside(reduction, of));
      return build_reduction(graph, reduction, at, inside, dtype);
    }
    const auto sum_of = [&](std::optional<ValueId> value) {
      const ValueId inside = only_inside(graph, value, of, Ex(0.0));
      return build_reduction(graph, Reduction::sum, at, inside, dtype);
    };
    Op quotient = plain_op(OpKind::map, dtype, solved_.shape);
    quotient.inputs = {sum_of(0), sum_of({})};
    quotient.reads = {quotient.write, quotient.write};
    quotient.compute = compute_type(dtype);
    quotient.expr = Ex::input(0) / Ex::input(1);
    return append(graph, std::move(quotient));
  }

  /// A dimension of an operand that is read beside it.
  struct Bound {
    DimIndex dim;
    Size length = 0;
  };

  const detail::MapCall& call_;
  const Operation op_;
  const CallPattern parsed_;
  std::vector<Shape> shapes_;  // of the operands
  Solved solved_;
  std::vector<int> axes_;  // of the points
  Shape points_;
  std::vector<Bound> bounds_;
};

}  // namespace

Tensor detail::run_map(const MapCall& call) {
  const Map map(call, call.operands);
  engine::RecordedCall recorded = engine::record_call(
      engine::Trace::Of::map, call.operands,
      [&](std::span<const Tensor> operands) { return std::vector<Tensor>{map(operands)}; });
  if (map.pattern().has_placements())
    recorded.graph = engine::lying_as_written(map.what(), recorded.graph, map.pattern(),
                                              engine::mesh_of_call(map.what(), call.operands));
  return std::move(engine::run_recorded(map.what(), recorded, call.operands).front());
}

}  // namespace ein
