#include "graph/build.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/op_kinds.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"
#include "tensor/identity.hpp"

namespace ein {

ValueId append(Graph& graph, Op op) {
  graph.ops.push_back(std::move(op));
  return static_cast<ValueId>(graph.ops.size()) - 1;
}

std::vector<Axis> axes_of(const Shape& shape) {
  std::vector<Axis> axes;
  for (std::size_t d = 0; d < shape.rank(); ++d)
    axes.push_back({"i" + std::to_string(d), shape[d]});
  return axes;
}

Access plain_access(std::span<const int> axes) {
  Access access;
  for (int axis : axes) access.push_back({0, {{axis, 1}}});
  return access;
}

Access plain_access(std::size_t rank, std::size_t first) {
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), static_cast<int>(first));
  return plain_access(axes);
}

DimIndex joined_dim(const std::vector<Axis>& axes, std::size_t first, std::size_t count) {
  DimIndex dim;
  Size stride = 1;
  for (std::size_t a = first + count; a-- > first; stride *= axes[a].size)
    dim.terms.insert(dim.terms.begin(), {static_cast<int>(a), stride});
  return dim;
}

Shape shape_of(const Access& access, const std::vector<Axis>& axes) {
  Shape shape;
  for (const DimIndex& dim : access) {
    Size size = 1;
    for (const DimIndex::Term& term : dim.terms)
      size *= axes[static_cast<std::size_t>(term.axis)].size;
    shape.push_back(size);
  }
  return shape;
}

std::optional<Size> extent_of(const DimIndex& dim, const std::vector<Axis>& axes) {
  Size extent = 1;
  for (std::size_t t = dim.terms.size(); t-- > 0;) {
    if (!ask_equal(dim.terms[t].coefficient, extent)) return std::nullopt;
    extent *= axes[static_cast<std::size_t>(dim.terms[t].axis)].size;
  }
  return extent;
}

ValueId converted(Graph& graph, ValueId value, DType to) {
  const DType from = graph.op(value).dtype;
  if (from == to) return value;
  Op op = plain_op(OpKind::map, to, graph.op(value).shape);
  op.inputs = {value};
  op.reads = {op.write};
  op.expr = Ex::input(0);
  op.compute = conversion_type(from, to);
  return append(graph, std::move(op));
}

Ex points_of(std::span<const Size> sizes) {
  double points = 1;
  Size formula = 1;
  for (Size size : sizes) {
    if (size.is_number())
      points *= static_cast<double>(size.word());
    else
      formula *= size;
  }
  return formula.is_number() ? Ex(points) : Ex::size(formula * static_cast<std::int64_t>(points));
}

bool goes_backwards(const Access& access) {
  return std::any_of(access.begin(), access.end(), [](const DimIndex& dim) {
    return std::any_of(dim.terms.begin(), dim.terms.end(),
                       [](const DimIndex::Term& term) { return goes_backwards(term); });
  });
}

Size length_of(const DimIndex& dim, const std::vector<Axis>& axes) {
  Size last = dim.offset;
  for (const DimIndex::Term& term : dim.terms)
    last += term.coefficient * (axes[static_cast<std::size_t>(term.axis)].size - 1);
  return last + 1;
}

bool is_at_position(const Op& op) {
  return op.kind == OpKind::gather ? op.reads[0][static_cast<std::size_t>(op.dim)] != DimIndex{}
                                   : op.kind == OpKind::place && writes_at_positions(op);
}

namespace {
Size size_of_role(const Op& op, MatrixAxis role) {
  const auto found = std::find(op.roles.begin(), op.roles.end(), role);
  return op.axes[static_cast<std::size_t>(found - op.roles.begin())].size;
}
}  // namespace

Size rows_of(const Op& op) { return size_of_role(op, MatrixAxis::rows); }
Size columns_of(const Op& op) { return size_of_role(op, MatrixAxis::columns); }

Size packed_size(MatrixFunction function, Size rows, Size columns) {
  const Size r = always_equal(rows, columns) || rows <= columns ? rows : columns;
  switch (function) {
    case MatrixFunction::qr:
      return rows * r + r * columns;
    case MatrixFunction::svd:
      return rows * r + r + r * columns;
    case MatrixFunction::eigh:
      return rows + rows * columns;
    default:
      return 0;
  }
}

Op op_of(OpKind kind, const std::vector<NamedValue>& inputs, const Place& place, DType dtype) {
  Op op{.kind = kind, .dtype = dtype, .shape = place.shape, .write = place.access};
  for (const NamedValue& input : inputs) {
    op.inputs.push_back(input.id);
    op.reads.push_back(input.access);
  }
  return op;
}

Op plain_op(OpKind kind, DType dtype, const Shape& shape) {
  return {.kind = kind,
          .dtype = dtype,
          .shape = shape,
          .axes = axes_of(shape),
          .write = plain_access(shape.rank())};
}

Op shift_op(const NamedValue& from, const Place& place, std::vector<Axis> axes, int axis, bool back,
            DType dtype) {
  NamedValue read = from;
  Place write = place;
  Access& moved = back ? read.access : write.access;
  const auto along = [&](const DimIndex& dim) { return dim == DimIndex{0, {{axis, 1}}}; };
  std::find_if(moved.begin(), moved.end(), along)->offset = 1;
  axes[static_cast<std::size_t>(axis)].size -= 1;
  return move_op(read, axes, write, dtype);
}

void drop_unused_axes(Op& op) {
  std::vector<int> renamed(op.axes.size(), -1);
  std::vector<Axis> kept;
  for (std::size_t a = 0; a < op.axes.size(); ++a) {
    bool is_used = uses(op.write, static_cast<int>(a));
    for (const Access& read : op.reads) is_used |= uses(read, static_cast<int>(a));
    if (!is_used) continue;
    renamed[a] = static_cast<int>(kept.size());
    kept.push_back(op.axes[a]);
  }
  if (kept.size() == op.axes.size()) return;
  const auto rename = [&](int& axis) { axis = renamed[static_cast<std::size_t>(axis)]; };
  const auto rename_all = [&](Access& access) {
    for (DimIndex& dim : access) {
      for (DimIndex::Term& term : dim.terms) rename(term.axis);
    }
  };
  for (std::size_t a = 0; a < op.roles.size(); ++a) {
    if (renamed[a] >= 0) op.roles[static_cast<std::size_t>(renamed[a])] = op.roles[a];
  }
  if (!op.roles.empty()) op.roles.resize(kept.size());
  op.axes = std::move(kept);
  for (Access& read : op.reads) rename_all(read);
  rename_all(op.write);
  if (info(op.kind).is_ordered) rename(op.axis);
  for (ScalarStep& step : op.expr.steps) {
    if (step.op == ScalarOp::index) rename(step.which);
  }
}

bool covers(const Access& access, const Shape& shape, const std::vector<Axis>& axes) {
  std::vector<char> seen(axes.size(), 0);
  for (std::size_t d = 0; d < access.size(); ++d) {
    if (!ask_equal(access[d].offset, 0)) return false;
    const std::optional<Size> extent = extent_of(access[d], axes);
    if (!extent || !ask_equal(*extent, shape[d])) return false;
    for (const DimIndex::Term& term : access[d].terms) {
      if (std::exchange(seen[static_cast<std::size_t>(term.axis)], 1)) return false;
    }
  }
  return true;
}

Range range_of(const DimIndex& dim, const std::vector<Axis>& axes) {
  Range range{dim.offset, dim.offset};
  for (const DimIndex::Term& term : dim.terms) {
    const Size size = axes[static_cast<std::size_t>(term.axis)].size;
    if (ask_equal(size, 0)) return {};
    (goes_backwards(term) ? range.first : range.last) += term.coefficient * (size - 1);
  }
  return range;
}

std::optional<std::vector<std::int64_t>> positions_of(const DimIndex& dim,
                                                      const std::vector<Axis>& axes,
                                                      std::int64_t most) {
  if (!dim.offset.is_number()) return std::nullopt;
  std::vector<std::int64_t> all{dim.offset.word()};
  for (const DimIndex::Term& term : dim.terms) {
    const Size size = axes[static_cast<std::size_t>(term.axis)].size, by = term.coefficient;
    Size points = std::ssize(all);
    if (!size.is_number() || !by.is_number() || multiply_overflows(points, size, points) ||
        points > most)
      return std::nullopt;
    std::vector<std::int64_t> more;
    for (const std::int64_t position : all) {
      for (std::int64_t i = 0; i < size.word(); ++i) more.push_back(position + i * by.word());
    }
    std::sort(more.begin(), more.end());
    more.erase(std::unique(more.begin(), more.end()), more.end());
    all = std::move(more);
  }
  return all;
}

namespace {
/// Whether it is one axis, as long as the dimension for all lengths: that asks nothing.
bool is_whole(const DimIndex& dim, Size length, const std::vector<Axis>& axes) {
  return always_equal(dim.offset, 0) && dim.terms.size() == 1 && is_one(dim.terms[0].coefficient) &&
         always_equal(axes[static_cast<std::size_t>(dim.terms[0].axis)].size, length);
}
}  // namespace

bool is_plain(const Access& access, const Shape& shape, const std::vector<Axis>& axes) {
  for (std::size_t d = 0; d < access.size(); ++d) {
    if (!is_whole(access[d], shape[d], axes)) return false;
    for (std::size_t e = 0; e < d; ++e) {
      if (access[e].terms[0].axis == access[d].terms[0].axis) return false;
    }
  }
  return true;
}

bool stays_inside(const Access& access, const Shape& shape, const std::vector<Axis>& axes) {
  for (std::size_t d = 0; d < access.size(); ++d) {
    if (is_whole(access[d], shape[d], axes)) continue;
    const Range range = range_of(access[d], axes);
    // Also where an axis is empty, an operation that only moves elements wants such an offset.
    if (access[d].offset < 0 || range.first < 0 || range.last >= shape[d]) return false;
  }
  return true;
}

bool meets_once(const Access& access, const std::vector<Axis>& axes) {
  std::vector<char> known(axes.size(), 0);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (ask_equal(axes[a].size, 0)) return true;
    known[a] = ask_equal(axes[a].size, 1);
  }
  const auto size = [&](const DimIndex::Term& term) {
    return axes[static_cast<std::size_t>(term.axis)].size;
  };
  // Dimension by dimension indices are found: where each step of an unknown axis is longer than all
  // smaller ones together can go.
  for (bool found = true; found;) {
    found = false;
    for (const DimIndex& dim : access) {
      std::vector<DimIndex::Term> unknown;
      for (const DimIndex::Term& term : dim.terms) {
        if (!ask_equal(term.coefficient, 0) && !known[static_cast<std::size_t>(term.axis)])
          unknown.push_back(term);
      }
      for (DimIndex::Term& term : unknown) {
        if (goes_backwards(term)) term.coefficient = -term.coefficient;
      }
      std::sort(unknown.begin(), unknown.end(),
                [](const auto& a, const auto& b) { return a.coefficient < b.coefficient; });
      Size reach = 0;
      bool is_clear = !unknown.empty();
      for (const DimIndex::Term& term : unknown) {
        is_clear &= term.coefficient > reach;
        reach += term.coefficient * (size(term) - 1);
      }
      if (!is_clear) continue;
      for (const DimIndex::Term& term : unknown) known[static_cast<std::size_t>(term.axis)] = 1;
      found = true;
    }
  }
  return std::find(known.begin(), known.end(), 0) == known.end();
}

bool has_windows(const Graph& graph, const Op& op) {
  if (!info(op.kind).reduces) return false;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (!stays_inside(op.reads[i], graph.op(op.inputs[i]).shape, op.axes)) return true;
  }
  return !covers(op.write, op.shape, op.axes);
}

ValueId padded(Graph& graph, ValueId value, Access& read, const std::vector<Axis>& axes,
               const std::optional<Ex>& fill) {
  const Shape shape = graph.op(value).shape;
  const DType dtype = graph.op(value).dtype;
  Place place{plain_access(shape.rank()), {}};
  bool is_padded = false;
  for (std::size_t d = 0; d < read.size(); ++d) {
    if (is_whole(read[d], shape[d], axes)) {
      place.shape.push_back(shape[d]);
      continue;
    }
    const Range range = range_of(read[d], axes);
    if (range.last < range.first) {  // no element is read: any place will do
      read[d].offset = 0;
      place.shape.push_back(shape[d]);
      continue;
    }
    const Size before = range.first < 0 ? -range.first : Size(0),
               behind = range.last >= shape[d] ? range.last - shape[d] + 1 : Size(0);
    is_padded |= before > 0 || behind > 0;
    place.access[d].offset = before;
    place.shape.push_back(before + shape[d] + behind);
  }
  if (!is_padded) return value;
  for (std::size_t d = 0; d < read.size(); ++d) read[d].offset += place.access[d].offset;
  Op op = op_of(OpKind::place, {{value, plain_access(shape.rank())}}, place, dtype);
  op.axes = axes_of(shape);
  if (fill) {
    op.inputs.push_back(filled(graph, place.shape, dtype, *fill));
    op.reads.push_back(op.write);
  }
  return append(graph, std::move(op));
}

Ex nothing_of(Combine combine, DType dtype) {
  if (!is_integral(dtype)) return Ex(identity<double>(combine));
  return visit(dtype, [&]<class T>(std::type_identity<T>) {
    return Ex::integer(convert<std::int64_t>(nothing<T>(combine)));
  });
}

ValueId filled(Graph& graph, const Shape& shape, DType dtype, const Ex& element) {
  Op op = plain_op(OpKind::map, dtype, shape);
  op.expr = element;
  op.compute = compute_type(dtype);
  return append(graph, std::move(op));
}

namespace {

/// The same points in reverse order along an axis.
void turn_round(Access& access, int axis, Size size) {
  for (DimIndex& dim : access) {
    for (DimIndex::Term& term : dim.terms) {
      if (term.axis != axis) continue;
      dim.offset += term.coefficient * (size - 1);
      term.coefficient = -term.coefficient;
    }
  }
}

}  // namespace

Op move_op(NamedValue from, const std::vector<Axis>& axes, Place to, DType dtype) {
  for (std::size_t a = 0; a < axes.size(); ++a) {
    Access along;  // of this axis alone
    for (const DimIndex& dim : to.access) {
      for (const DimIndex::Term& term : dim.terms) {
        if (term.axis == static_cast<int>(a)) along.push_back({0, {term}});
      }
    }
    if (!goes_backwards(along)) continue;
    turn_round(from.access, static_cast<int>(a), axes[a].size);
    turn_round(to.access, static_cast<int>(a), axes[a].size);
  }
  Op op =
      op_of(covers(to.access, to.shape, axes) ? OpKind::reindex : OpKind::place, {from}, to, dtype);
  op.axes = axes;
  drop_unused_axes(op);
  return op;
}

}  // namespace ein
