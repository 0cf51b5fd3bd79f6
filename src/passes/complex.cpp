#include "passes/complex.hpp"

#include <algorithm>
#include <utility>

#include <ein/error.hpp>
#include "graph/build.hpp"
#include "graph/op_kinds.hpp"
#include "passes/complex_expr.hpp"
#include "size/ask.hpp"
#include "size/size_scope.hpp"
#include "tensor/compute_type.hpp"

namespace ein {
namespace {

/// The dimension of the parts.
Axis axis_of_parts() { return {"re im", 2}; }

Access with_dim(Access access, DimIndex dim) {
  access.push_back(std::move(dim));
  return access;
}
Shape with_size(Shape shape, Size size) {
  shape.push_back(size);
  return shape;
}

class Pairs {
 public:
  Pairs(const Graph& graph, const std::string& call) : from_(graph), call_(call) {}

  Graph run() {
    for (const Op& op : from_.ops) {
      op_ = &op;
      if (needs_pairs(op)) {
        values_.push_back(rewritten(op));
      } else {
        Op copy = op;
        for (ValueId& input : copy.inputs) input = whole(input);
        values_.push_back({append(to_, std::move(copy))});
      }
    }
    for (const ValueId output : from_.outputs) to_.outputs.push_back(whole(output));
    for (const Assignment& a : from_.assignments)
      to_.assignments.push_back({whole(a.target), whole(a.value)});
    return std::move(to_);
  }

 private:
  /// What a value became: a complex one its parts in one value, or in two, of size 1 along the last
  /// dimension, of which the former is made when it is wanted.
  struct Value {
    ValueId whole = -1;
    ValueId real = -1, imag = -1;
  };

  const Op& before(ValueId id) const { return from_.op(id); }
  bool is_complex(ValueId id) const { return ein::is_complex(before(id).dtype); }
  bool needs_pairs(const Op& op) const {
    return ein::is_complex(op.dtype) || std::any_of(op.inputs.begin(), op.inputs.end(),
                                                    [&](ValueId i) { return is_complex(i); });
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& help) const {
    DType dtype = op_->dtype;
    for (const ValueId input : op_->inputs) {
      if (is_complex(input)) dtype = before(input).dtype;
    }
    throw Error(ErrorKind::dtype,
                call_ + ": " + std::string(name(dtype)) + " " + what + "\n  help: " + help);
  }
  [[noreturn]] void refuse_order(const std::string& what) const {
    refuse("has no " + what + ": complex numbers are not ordered",
           "take it of ein::abs(x) or ein::real(x)");
  }
  [[noreturn]] void refuse_operation(const std::string& what) const {
    refuse("has no " + what, "use ein::real(x) and ein::imag(x)");
  }

  [[noreturn]] void refuse_function(ScalarOp function) const {
    const std::string what(info(function).name);
    switch (function) {
      case ScalarOp::lt:
      case ScalarOp::le:
      case ScalarOp::gt:
      case ScalarOp::ge:
      case ScalarOp::min:
      case ScalarOp::max:
        refuse_order(what);
      default:
        refuse_operation("function " + what);
    }
  }

  /// With the marks of the operation at hand.
  ValueId add(Op op) {
    op.marks = op_->marks;
    return append(to_, std::move(op));
  }

  ValueId whole(ValueId id) {
    Value& value = values_[static_cast<std::size_t>(id)];
    if (value.whole < 0) value.whole = joined(value.real, value.imag);
    return value.whole;
  }
  ValueId joined(ValueId real, ValueId imag) {
    const Op& part = to_.op(real);
    Op op{.kind = OpKind::concat, .dtype = part.dtype, .shape = part.shape};
    op.dim = static_cast<int>(op.shape.rank()) - 1;
    op.shape.back() = 2;
    op.inputs = {real, imag};
    return add(std::move(op));
  }

  /// A value where a map reads it.
  struct Read {
    Value value;
    Access access;
    bool is_complex = true;

    /// A part of a complex one.
    NamedValue part(bool imag) const {
      if (value.real >= 0) return {imag ? value.imag : value.real, with_dim(access, {})};
      return {value.whole, with_dim(access, {imag ? 1 : 0, {}})};
    }
  };
  std::vector<Read> reads_of(const Op& op) {
    std::vector<Read> reads;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (!is_complex(op.inputs[i])) whole(op.inputs[i]);
      reads.push_back(
          {values_[static_cast<std::size_t>(op.inputs[i])], op.reads[i], is_complex(op.inputs[i])});
    }
    return reads;
  }

  Value rewritten(const Op& op) {
    switch (op.kind) {
      case OpKind::map:
        return mapped(op, reads_of(op), op.expr);
      case OpKind::contract:
        return contracted(op);
      case OpKind::reduce:
        if (info(op.combine).asks) return questioned(op);
        if (op.combine == Combine::prod) return multiplied(op);
        [[fallthrough]];
      case OpKind::scan:
      case OpKind::scatter:
        if (op.kind == OpKind::scan && op.inputs.size() == 2) refuse_operation("linear recurrence");
        if (op.combine == Combine::prod && op.kind == OpKind::scan) return multiplied_up(op);
        if (op.combine == Combine::prod) refuse_operation("product by positions");
        if (op.combine != Combine::sum) refuse_order(std::string(name(op.combine)));
        return with_parts(op);
      case OpKind::input:
        return with_parts(op);
      case OpKind::argsort:
        refuse_order("order");
      case OpKind::matrix:
        refuse_operation(std::string(info(op.function).name));
      case OpKind::collective:
        break;  // comes later
      default:
        if (info(op.kind).moves) return with_parts(op);
    }
    throw std::logic_error("without_complex: an operation that it does not know");
  }

  /// The same along the dimension of the parts.
  Value with_parts(const Op& op) {
    require_complex(op);
    Op both = op;
    both.dtype = real_dtype(op.dtype);
    both.shape.push_back(2);
    for (ValueId& input : both.inputs) input = whole(input);
    if (info(op.kind).has_accesses) {
      const DimIndex along{0, {{static_cast<int>(op.axes.size()), 1}}};
      both.axes.push_back(axis_of_parts());
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        if (is_complex(op.inputs[i])) both.reads[i].push_back(along);
      }
      both.write.push_back(along);
    }
    return {add(std::move(both))};
  }

  void require_complex(const Op& op) const {
    if (ein::is_complex(op.dtype)) return;
    refuse("does not become " + std::string(name(op.dtype)) + ", which has no imaginary part",
           "say which part: ein::real(x), ein::imag(x) or ein::abs(x)");
  }

  /// The map `op`, whose inputs are these instead of its own.
  Value mapped(const Op& op, const std::vector<Read>& inputs, const ScalarExpr& expr) {
    std::vector<NamedValue> read;
    const auto add_read = [&](NamedValue value) {
      read.push_back(std::move(value));
      return Ex::input(static_cast<int>(read.size()) - 1);
    };
    std::vector<ComplexEx> known;
    for (const Read& input : inputs) {
      if (!input.is_complex) {
        known.push_back({add_read({input.value.whole, input.access})});
        continue;
      }
      const Ex real = add_read(input.part(false));
      known.push_back({real, add_read(input.part(true))});
    }
    const DType compute = complex_compute_type(expr, op.compute);
    ComplexEx value = complex_value(
        expr, op.compute, [&](int which) { return known[static_cast<std::size_t>(which)]; },
        [&](ScalarOp function) { refuse_function(function); });
    if (!ein::is_complex(op.dtype)) {
      if (value.imag && op.dtype == DType::boolean) value = {is_true(value)};
      if (value.imag) require_complex(op);
      return {add(part_of_map(op, compute, read, value.real, {op.write, op.shape}))};
    }
    const Place place{with_dim(op.write, {}), with_size(op.shape, 1)};
    Value parts;
    parts.real = add(part_of_map(op, compute, read, value.real, place));
    parts.imag = add(part_of_map(op, compute, read, value.imag.value_or(Ex(0.0)), place));
    return parts;
  }

  /// With those inputs alone that the formula needs.
  Op part_of_map(const Op& op, DType compute, const std::vector<NamedValue>& read,
                 const Ex& formula, const Place& place) const {
    Op part{.kind = OpKind::map,
            .dtype = real_dtype(op.dtype),
            .shape = place.shape,
            .axes = op.axes,
            .write = place.access,
            .expr = formula,
            .compute = compute};
    std::vector<int> numbers(read.size(), -1);
    for (ScalarStep& step : part.expr.steps) {
      if (step.op != ScalarOp::input) continue;
      int& number = numbers[static_cast<std::size_t>(step.which)];
      if (number < 0) {
        number = static_cast<int>(part.inputs.size());
        part.inputs.push_back(read[static_cast<std::size_t>(step.which)].id);
        part.reads.push_back(read[static_cast<std::size_t>(step.which)].access);
      }
      step.which = number;
    }
    return part;
  }

  /// Whether any or all elements differ from zero.
  Value questioned(const Op& op) {
    const Op& x = before(op.inputs[0]);
    Op asked = plain_op(OpKind::map, real_dtype(x.dtype), x.shape);
    asked.compute = compute_type(x.dtype);
    asked.inputs = op.inputs;
    asked.reads = {asked.write};
    const Value test =
        mapped(asked, reads_of(asked), Ex::apply(ScalarOp::ne, Ex::input(0), Ex(0.0)));
    Op reduced = op;
    reduced.dtype = real_dtype(op.dtype);
    reduced.inputs = {test.whole};
    const Value answer{add(std::move(reduced))};
    if (!ein::is_complex(op.dtype)) return answer;
    Op number = plain_op(OpKind::map, op.dtype, op.shape);
    number.compute = compute_type(op.dtype);
    return mapped(number, {{answer, number.write, false}}, Ex::input(0));
  }

  /// A product of many elements: the first half by the second, until one is left.
  Value multiplied(const Op& op) {
    require_complex(op);
    // One dimension for each axis that is kept, and one for all others together.
    Op lines{.kind = OpKind::reindex, .dtype = real_dtype(op.dtype)};
    lines.axes = op.axes;
    const auto parts = static_cast<int>(op.axes.size());
    lines.axes.push_back(axis_of_parts());
    lines.inputs = {whole(op.inputs[0])};
    lines.reads = {with_dim(op.reads[0], {0, {{parts, 1}}})};
    std::vector<int> kept;
    DimIndex along;
    Size stride = 1;
    for (int a = parts; a-- > 0;) {
      if (is_kept(op, a)) {
        kept.insert(kept.begin(), a);
        continue;
      }
      along.terms.insert(along.terms.begin(), {a, stride});
      stride *= op.axes[static_cast<std::size_t>(a)].size;
    }
    lines.write = with_dim(with_dim(plain_access(kept), along), {0, {{parts, 1}}});
    lines.shape = shape_of(lines.write, lines.axes);
    Shape shape(std::span(lines.shape.begin(), lines.shape.rank() - 1));
    std::int64_t count = number_at_hand(stride);
    Value value{add(std::move(lines))};

    const auto piece = [&](std::int64_t begin, const Access& plain) {
      Access access = plain;
      access.back().offset = begin;
      return access;
    };
    for (; count > 1; count -= count / 2) {
      const std::int64_t half = count / 2;
      shape.back() = half;
      Op map = plain_op(OpKind::map, op.dtype, shape);
      map.compute = compute_type(op.dtype);
      Value product = mapped(map, {{value, piece(0, map.write)}, {value, piece(half, map.write)}},
                             Ex::input(0) * Ex::input(1));
      product.whole = joined(product.real, product.imag);
      if (count % 2 == 1) {
        Op rest = plain_op(OpKind::reindex, real_dtype(op.dtype), to_.op(product.whole).shape);
        const std::size_t d = rest.write.size() - 2;
        rest.axes[d].size = rest.shape[d] = 1;
        rest.inputs = {value.whole};
        rest.reads = {rest.write};
        rest.reads[0][d] = {2 * half, {{static_cast<int>(d), 1}}};
        Op both{.kind = OpKind::concat, .dtype = rest.dtype, .shape = rest.shape};
        both.shape[d] = half + 1;
        both.dim = static_cast<int>(d);
        both.inputs = {product.whole, add(std::move(rest))};
        product = {add(std::move(both))};
      }
      value = product;
    }
    Op result = op;
    result.kind = count == 0 ? OpKind::map : OpKind::reindex;
    if (count == 0) {
      result.inputs.clear();
      result.reads.clear();
      result.compute = compute_type(op.dtype);
      drop_unused_axes(result);
      return mapped(result, {}, Ex(1.0));
    }
    result.dtype = real_dtype(op.dtype);
    result.combine = Combine::sum;
    result.axes.push_back(axis_of_parts());
    result.shape.push_back(2);
    result.write.push_back({0, {{parts, 1}}});
    if (value.whole < 0) value.whole = joined(value.real, value.imag);
    result.inputs = {value.whole};
    result.reads = {with_dim(with_dim(plain_access(kept), {}), {0, {{parts, 1}}})};
    drop_unused_axes(result);
    return {add(std::move(result))};
  }

  /// Cumulative products, by doubling: after k steps an element is the product of the 2^k up to it.
  /// A product of many has about log2 n roundings so, and slopes where elements are 0.
  Value multiplied_up(const Op& op) {
    require_complex(op);
    if (op.reverse) throw std::logic_error("without_complex: products from the end");
    Op copy = op;
    copy.kind = OpKind::map;
    copy.compute = compute_type(op.dtype);
    Value value = mapped(copy, reads_of(op), Ex::input(0));
    std::size_t d = 0;
    while (!uses({op.write[d]}, op.axis)) ++d;
    const std::int64_t size = number_at_hand(op.shape[d]);
    for (std::int64_t done = 1; done < size; done *= 2) {
      if (value.whole < 0) value.whole = joined(value.real, value.imag);
      Shape shape = op.shape;
      shape[d] = size - done;
      Op map = plain_op(OpKind::map, op.dtype, shape);
      map.compute = compute_type(op.dtype);
      Access later = map.write;
      later[d].offset = done;
      const Value product =
          mapped(map, {{value, map.write}, {value, later}}, Ex::input(0) * Ex::input(1));
      Op first = plain_op(OpKind::reindex, real_dtype(op.dtype), to_.op(value.whole).shape);
      first.axes[d].size = first.shape[d] = done;
      first.inputs = {value.whole};
      first.reads = {first.write};
      Op both{.kind = OpKind::concat, .dtype = first.dtype, .shape = to_.op(value.whole).shape};
      both.dim = static_cast<int>(d);
      both.inputs = {add(std::move(first)), joined(product.real, product.imag)};
      value = {add(std::move(both))};
    }
    return value;
  }

  // --- sums of products ---

  Value contracted(const Op& op) {
    require_complex(op);
    if (!reduces(op.write, op.axes) && op.inputs.size() == 2) {
      Op map = op;
      map.compute = compute_type(op.dtype);
      return mapped(map, reads_of(op), Ex::input(0) * Ex::input(1));
    }
    const auto count = std::count_if(op.inputs.begin(), op.inputs.end(),
                                     [&](ValueId input) { return is_complex(input); });
    if (count == 1) return with_parts(op);
    if (op.inputs.size() != 2)
      throw std::logic_error("without_complex: contractions have no order");

    if (const auto small = operand_by_parts(op)) return contracted_by_parts(op, *small);
    const std::size_t k = operand_of_matrices(op);
    const auto r = static_cast<int>(op.axes.size()), q = r + 1;
    Op sum = op;
    sum.dtype = real_dtype(op.dtype);
    sum.axes.push_back(axis_of_parts());
    sum.axes.push_back({"re im'", 2});
    sum.shape.push_back(2);
    sum.write.push_back({0, {{r, 1}}});
    NamedValue matrices = matrices_of(op, k, r, q);
    sum.inputs[k] = matrices.id;
    sum.reads[k] = std::move(matrices.access);
    sum.inputs[1 - k] = whole(op.inputs[1 - k]);
    sum.reads[1 - k].push_back({0, {{q, 1}}});
    return {add(std::move(sum))};
  }

  Size elements(const Op& op, std::size_t k) const { return numel(before(op.inputs[k]).shape); }
  /// An axis for each dimension of an operand, with the name that the contraction has for it.
  std::vector<Axis> axes_of_operand(const Op& op, std::size_t k) const {
    std::vector<Axis> axes = axes_of(before(op.inputs[k]).shape);
    for (std::size_t d = 0; d < axes.size(); ++d) {
      const auto& terms = op.reads[k][d].terms;
      if (terms.size() == 1) axes[d].name = op.axes[static_cast<std::size_t>(terms[0].axis)].name;
    }
    return axes;
  }
  /// The operand with far fewer elements than the other.
  std::optional<std::size_t> much_smaller(const Op& op) const {
    if (elements(op, 0) < elements(op, 1) / 8) return 0;
    if (elements(op, 1) < elements(op, 0) / 8) return 1;
    return std::nullopt;
  }

  /// An operand that is much smaller than the other, whose innermost axis is not summed: products
  /// of all parts read the other as it lies, and once.
  std::optional<std::size_t> operand_by_parts(const Op& op) const {
    const auto small = much_smaller(op);
    if (!small) return std::nullopt;
    const Access& large = op.reads[1 - *small];
    if (large.empty() || large.back().terms.empty()) return std::nullopt;
    return is_kept(op, large.back().terms.back().axis) ? small : std::nullopt;
  }

  /// y(p, ..., q) sums the products of part p of the small operand and part q of the other. Then
  /// y(0, 0) - y(1, 1) and y(0, 1) + y(1, 0) are the parts of the result.
  Value contracted_by_parts(const Op& op, std::size_t small) {
    const DType dtype = real_dtype(op.dtype);
    const auto p = static_cast<int>(op.axes.size()), q = p + 1;
    const auto with_first = [](Access access, DimIndex dim) {
      access.insert(access.begin(), std::move(dim));
      return access;
    };
    const Op& x = before(op.inputs[small]);
    const auto rank = static_cast<int>(x.shape.rank());
    Op first{.kind = OpKind::reindex, .dtype = dtype, .axes = axes_of_operand(op, small)};
    first.axes.push_back(axis_of_parts());
    first.inputs = {whole(op.inputs[small])};
    first.reads = {plain_access(x.shape.rank() + 1)};
    first.write = with_first(plain_access(x.shape.rank()), {0, {{rank, 1}}});
    first.shape = shape_of(first.write, first.axes);

    Op sum = op;
    sum.dtype = dtype;
    sum.axes.push_back(axis_of_parts());
    sum.axes.push_back({"re im'", 2});
    sum.inputs[small] = add(std::move(first));
    sum.reads[small] = with_first(op.reads[small], {0, {{p, 1}}});
    sum.inputs[1 - small] = whole(op.inputs[1 - small]);
    sum.reads[1 - small].push_back({0, {{q, 1}}});
    sum.write = with_dim(with_first(op.write, {0, {{p, 1}}}), {0, {{q, 1}}});
    sum.shape = shape_of(sum.write, sum.axes);
    const ValueId y = add(std::move(sum));

    const auto combined = [&](int of_first, int of_second, ScalarOp how) {
      Op map = plain_op(OpKind::map, dtype, with_size(op.shape, 1));
      map.compute = compute_type(dtype);
      const Access plain = plain_access(op.shape.rank());
      const auto read = [&](int a, int b) { return with_dim(with_first(plain, {a, {}}), {b, {}}); };
      map.inputs = {y, y};
      map.reads = {read(0, of_first), read(1, of_second)};
      map.expr = Ex::apply(how, Ex::input(0), Ex::input(1));
      return add(std::move(map));
    };
    Value value;
    value.real = combined(0, 1, ScalarOp::sub);
    value.imag = combined(1, 0, ScalarOp::add);
    return value;
  }

  /// Which operand's elements become matrices of 2 × 2, with four numbers for two: one that is much
  /// smaller, or the one that has the last axis of the result, so that this and the parts of the
  /// result are one axis of the product.
  std::size_t operand_of_matrices(const Op& op) const {
    if (const auto small = much_smaller(op)) return *small;
    for (std::size_t d = op.write.size(); d-- > 0;) {
      for (std::size_t t = op.write[d].terms.size(); t-- > 0;) {
        const int axis = op.write[d].terms[t].axis;
        const bool in_first = uses(op.reads[0], axis), in_second = uses(op.reads[1], axis);
        if (in_first != in_second) return in_first ? 0 : 1;
      }
    }
    return elements(op, 0) < elements(op, 1) ? 0 : 1;
  }

  /// Operand k with e(..., q, r) in place of each element a + i·b: (a, b) for q = 0 and (-b, a) for
  /// q = 1, so that Σ over q of (c, d)_q · e_qr is the product. q follows the last dimension that
  /// is summed, r the last that is not.
  NamedValue matrices_of(const Op& op, std::size_t k, int r, int q) {
    const ValueId operand = op.inputs[k];
    const Access& read = op.reads[k];
    const std::size_t rank = read.size();
    std::size_t after_summed = rank, after_kept = rank;
    for (std::size_t d = 0; d < rank; ++d) {
      for (const DimIndex::Term& term : read[d].terms)
        (is_kept(op, term.axis) ? after_kept : after_summed) = d;
    }
    // The dimensions of the result: those of the operand, the parts (rank), and q (rank + 1).
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < rank; ++d) {
      order.push_back(d);
      if (d == after_summed) order.push_back(rank + 1);
      if (d == after_kept) order.push_back(rank);
    }
    if (after_summed == rank) order.push_back(rank + 1);
    if (after_kept == rank) order.push_back(rank);

    // Written where they stay: passes compute what a concatenation alone reads in its result.
    const Op& z = before(operand);
    const Read z_read{values_[static_cast<std::size_t>(operand)], plain_access(rank)};
    const auto piece = [&](OpKind kind, const NamedValue& from, bool has_both_parts) {
      Op copy{.kind = kind, .dtype = real_dtype(z.dtype), .axes = axes_of_operand(op, k)};
      Access plain = plain_access(rank);
      plain.push_back(has_both_parts ? DimIndex{0, {{static_cast<int>(rank), 1}}} : DimIndex{});
      if (has_both_parts) copy.axes.push_back(axis_of_parts());
      for (const std::size_t d : order) copy.write.push_back(d > rank ? DimIndex{} : plain[d]);
      copy.shape = shape_of(copy.write, copy.axes);
      copy.inputs = {from.id};
      copy.reads = {from.access};
      copy.compute = compute_type(z.dtype);
      return copy;
    };
    const auto place_of = [&](std::size_t d) {
      return static_cast<int>(std::find(order.begin(), order.end(), d) - order.begin());
    };
    const auto both_of = [&](ValueId first, ValueId second, std::size_t d) {
      Op both{.kind = OpKind::concat, .dtype = to_.op(first).dtype, .shape = to_.op(first).shape};
      both.dim = place_of(d);
      both.shape[static_cast<std::size_t>(both.dim)] = 2;
      both.inputs = {first, second};
      return add(std::move(both));
    };
    const ValueId as_it_is =
        add(piece(OpKind::reindex, {whole(operand), plain_access(rank + 1)}, true));
    // i·(a + i·b) is -b + i·a.
    Op negative = piece(OpKind::map, z_read.part(true), false);
    negative.expr = Ex::apply(ScalarOp::neg, Ex::input(0));
    const ValueId first = add(std::move(negative)),
                  second = add(piece(OpKind::reindex, z_read.part(false), false));
    const ValueId times_i = both_of(first, second, rank);
    NamedValue matrices{both_of(as_it_is, times_i, rank + 1), {}};
    for (const std::size_t d : order) {
      matrices.access.push_back(d < rank    ? read[d]
                                : d == rank ? DimIndex{0, {{r, 1}}}
                                            : DimIndex{0, {{q, 1}}});
    }
    return matrices;
  }

  const Graph& from_;
  const std::string& call_;
  const Op* op_ = nullptr;  // at hand
  Graph to_;
  std::vector<Value> values_;
};

}  // namespace

bool has_complex(const Graph& graph) {
  return std::any_of(graph.ops.begin(), graph.ops.end(),
                     [](const Op& op) { return is_complex(op.dtype); });
}

Graph without_complex(const Graph& graph, const std::string& call, const OrderOptions& options) {
  if (!has_complex(graph)) return graph;
  Graph pairs = Pairs(order_contractions(graph, options), call).run();
  verify(pairs);
  return pairs;
}

}  // namespace ein
