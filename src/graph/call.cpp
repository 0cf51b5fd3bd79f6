#include "graph/call.hpp"

#include <algorithm>

#include "ein/grammar/numbers.hpp"
#include "graph/build.hpp"
#include "graph/join.hpp"
#include "graph/named.hpp"
#include "graph/reductions.hpp"
#include "graph/solve.hpp"
#include "graph/spread.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"

namespace ein {
namespace {

using grammar::Pattern;
using grammar::Term;
using grammar::TermKind;

/// The axes before and after the '*' of a pack or unpack pattern; those under '...' have its term.
struct PackedPattern {
  std::vector<const Term*> before, after;
  const Term* star = nullptr;
  const Term* ellipsis = nullptr;
  /// `rank`: of a tensor in which '*' is one axis. It says how many axes are under '...'.
  PackedPattern(const Pattern& pattern, std::size_t rank) {
    for (const Term& term : pattern.terms) {
      const bool is_open = term.kind == TermKind::ellipsis;
      if (is_open) ellipsis = &term;
      if (term.kind == TermKind::packed) {
        star = &term;
        continue;
      }
      const std::size_t words = pattern.terms.size() - 1;
      const std::size_t count = !is_open ? 1 : rank > words ? rank - words : 0;
      std::vector<const Term*>& side = star ? after : before;
      side.insert(side.end(), count, &term);
    }
  }
  std::size_t named() const { return before.size() + after.size(); }
};

class CallGraph {
 public:
  CallGraph(const PatternCall& call, std::span<const OperandType> operands)
      : call_(call),
        operands_(operands),
        stacked_(call.stacked && call.pattern.inputs().size() == 1) {}

  Graph build() {
    if (operands_.empty()) {
      fail(ErrorKind::arity, name(call_.op), "the call has no operands", call_.pattern.text, {});
    }
    check();
    require_one_dtype();
    for (const OperandType& operand : operands_) {
      values_.push_back(
          add({.kind = OpKind::input, .dtype = operand.dtype, .shape = operand.shape}));
      shapes_.push_back(operand.shape);
    }
    switch (call_.op) {
      case Operation::einsum:
      case Operation::rearrange:
      case Operation::repeat:
      case Operation::reduce:
        compute();
        return finish();
      case Operation::pack:
        return finish(pack());
      case Operation::unpack:
        unpack();
        return finish();
      default:
        break;
    }
    throw std::logic_error("build_graph: an operation without a graph");
  }

 private:
  void check() const {
    const std::size_t count = stacked_ ? 1 : operands_.size();
    require_valid(call_, count);
    const bool takes_many = grammar::form_of(call_.op).operands == grammar::Form::any_number;
    if (!takes_many && call_.op != Operation::pack && count != 1) {
      fail(ErrorKind::arity, name(call_.op),
           std::string(name(call_.op)) + " takes 1 operand, the call has " + std::to_string(count),
           call_.pattern.text, {});
    }
  }

  void require_one_dtype() const {
    for (std::size_t k = 1; k < operands_.size(); ++k) {
      if (operands_[k].dtype == operands_[0].dtype) continue;
      const std::string first(name(operands_[0].dtype)), other(name(operands_[k].dtype));
      std::vector<Mark> marks;
      if (call_.pattern.inputs().size() == operands_.size()) {
        marks = {mark_side(call_.pattern, call_.pattern.sides[0], first),
                 mark_side(call_.pattern, call_.pattern.sides[k], other)};
      }
      fail(ErrorKind::dtype, name(call_.op),
           "operands have different dtypes: " + first + " in operand 1, " + other + " in operand " +
               std::to_string(k + 1),
           call_.pattern.text, marks, {"help: cast one with .to(dtype)"});
    }
  }

  static std::string_view name(Operation op) { return ein::name(op); }
  static std::string_view name(DType dtype) { return ein::name(dtype); }

  ValueId add(Op op) { return append(graph_, std::move(op)); }
  Graph finish(ValueId output) {
    graph_.outputs.push_back(output);
    return finish();
  }
  Graph finish() {
    for (ValueId& output : graph_.outputs) output = converted(graph_, output, result_dtype());
    verify(graph_);
    return std::move(graph_);
  }
  DType dtype() const { return operands_[0].dtype; }
  /// The dtype of the results, as the call says it or by itself.
  DType result_dtype() const {
    return call_.dtype.value_or(
        ein::result_dtype(call_.op, call_.pattern, call_.reduction, dtype()));
  }

  ValueId add_reindex(ValueId from, const std::vector<Axis>& axes, Access read, Access write,
                      const Shape& shape) {
    Op op = op_of(OpKind::reindex, {{from, std::move(read)}}, {std::move(write), shape},
                  graph_.op(from).dtype);
    op.axes = axes;
    drop_unused_axes(op);
    return add(std::move(op));
  }

  /// The operand; several that are stacked become one on a new first axis.
  void stack_operands() {
    if (!stacked_) return;
    Shape one = shapes_[0];
    std::vector<ValueId> parts;
    for (std::size_t k = 0; k < values_.size(); ++k) {
      if (!ask_equal(shapes_[k], one)) {
        fail(ErrorKind::size, name(call_.op),
             "the tensors of a list differ in shape: " + one.to_string() + " in operand 1, " +
                 shapes_[k].to_string() + " in operand " + std::to_string(k + 1),
             call_.pattern.text, {}, {"help: pack joins tensors of unlike shapes"});
      }
      const std::vector<Axis> axes = axes_of(one);
      Access write = plain_access(one.rank());
      write.insert(write.begin(), DimIndex{});
      parts.push_back(
          add_reindex(values_[k], axes, plain_access(one.rank()), write, shape_of(write, axes)));
    }
    Shape shape{static_cast<std::int64_t>(parts.size())};
    for (Size size : one) shape.push_back(size);
    require_fits(shape, {}, "the stacked list");
    values_ = {add(
        {.kind = OpKind::concat, .dtype = dtype(), .shape = shape, .inputs = std::move(parts)})};
    shapes_ = {shape};
  }

  Solved solved() const {
    Solved s = solve(call_.op, call_.pattern, shapes_, call_.sizes);
    if (s.cases.empty()) require_fits(s.shape, mark_dims(call_.pattern, call_.pattern.output()));
    return s;
  }

  void require_fits(const Shape& shape, const std::vector<Mark>& marks,
                    const std::string& what = "the result") const {
    if (fits_memory(shape, std::max(size_of(dtype()), size_of(result_dtype())))) return;
    fail(ErrorKind::overflow, name(call_.op),
         what + " of shape " + shape.to_string() + " needs more than 2^63 - 1 bytes",
         call_.pattern.text, marks, {show_operands(shapes_)});
  }

  /// What the pattern says: as a whole, or case by case.
  void compute() {
    stack_operands();
    const Solved s = solved();
    if (s.cases.empty()) {
      graph_.outputs.push_back(computed(call_.pattern.has_sums() ? with_used_axes(s) : s, values_));
      return;
    }
    std::vector<ValueId> values;
    for (std::size_t p = 0; p < s.cases.size(); ++p) {
      const SolvedCase& part = s.cases[p];
      require_fits(part.shape, {}, "a piece of the result");
      Solved one = s;
      one.reads = part.reads;
      one.write = part.write;
      one.shape = part.shape;
      values.push_back(computed(with_used_axes(one),
                                std::span(values_).subspan(part.operand, part.reads.size())));
    }
    graph_.outputs = joined_cases(graph_, call_.pattern, s, added(s, std::move(values)));
    for (ValueId output : graph_.outputs) require_fits(graph_.op(output).shape, {});
  }
  /// Without the axes of other cases, and those inside a sum that is one axis.
  static Solved with_used_axes(Solved s) {
    Op op{.kind = OpKind::contract, .axes = s.axes, .reads = s.reads, .write = s.write, .expr = {}};
    drop_unused_axes(op);
    s.axes = std::move(op.axes);
    s.reads = std::move(op.reads);
    s.write = std::move(op.write);
    return s;
  }
  /// The sum of all cases of a place, for the first of them.
  std::vector<ValueId> added(const Solved& s, std::vector<ValueId> values) {
    const auto& cases = s.pieces.cases;
    for (std::size_t first = 0, p = 1; p < values.size(); ++p) {
      const bool is_same = cases[p].output.side == cases[first].output.side &&
                           cases[p].output.pieces == cases[first].output.pieces;
      if (is_same)
        values[first] = sum_of(values[first], values[p]);
      else
        first = p;
    }
    return values;
  }
  ValueId sum_of(ValueId a, ValueId b) {
    const Op& like = graph_.op(a);
    Op op = plain_op(OpKind::map, like.dtype, like.shape);
    op.compute = compute_type(like.dtype);
    op.inputs = {a, b};
    op.reads = {op.write, op.write};
    op.expr = (Ex::input(0) + Ex::input(1)).expr();
    return add(std::move(op));
  }
  ValueId computed(const Solved& s, std::span<const ValueId> values) {
    switch (call_.op) {
      case Operation::einsum:
        return einsum(s, values);
      case Operation::reduce:
        return reduce(s, values[0]);
      default:
        return s.has_braces ? move_at_functions(s, values[0])
                            : add_reindex(values[0], s.axes, s.reads[0], s.write, s.shape);
    }
  }

  ValueId move_at_functions(const Solved& s, ValueId value) {
    if (!stays_inside(s.write, s.shape, s.axes) || !meets_once(s.write, s.axes)) {
      fail(ErrorKind::pattern, "rearrange",
           "the result has a place that several elements come to, or an element has none",
           call_.pattern.text, mark_dims(call_.pattern, call_.pattern.output()),
           {show_operands(shapes_), "help: einsum and reduce \"sum\" add up what meets"});
    }
    Access read = s.reads[0];
    const bool is_of_nothing = std::any_of(
        s.axes.begin(), s.axes.end(), [](const Axis& axis) { return always_equal(axis.size, 0); });
    // What reads nothing reads it inside.
    for (DimIndex& dim : read) dim.offset = is_of_nothing ? Size(0) : dim.offset;
    return add(move_op({value, std::move(read)}, s.axes, {s.write, s.shape}, dtype()));
  }

  ValueId reduce(const Solved& s, ValueId value) {
    require_defined(call_.reduction, dtype(), s, call_.pattern, shapes_[0]);
    return build_reduction(graph_, call_.reduction, s, value,
                           dtype_to_combine(dtype(), result_dtype()));
  }

  /// What is added is not rounded before.
  DType dtype_of_products(const Solved& s) const {
    const DType combined = dtype_to_combine(dtype(), result_dtype());
    return s.cases.empty() || is_complex(combined) ? combined : compute_type(combined);
  }
  ValueId einsum(const Solved& s, std::span<const ValueId> values) {
    // Axes that only the result has (numbers in it) repeat what is computed without them.
    std::vector<char> is_new(s.axes.size(), 1);
    for (const Access& read : s.reads) {
      for (const DimIndex& dim : read) {
        for (const DimIndex::Term& term : dim.terms)
          is_new[static_cast<std::size_t>(term.axis)] = 0;
      }
    }
    bool repeats = false;
    for (std::size_t a = 0; a < is_new.size(); ++a)
      repeats |= is_new[a] && uses(s.write, static_cast<int>(a));
    if (values.size() == 1 && !reduces(s.write, s.axes) && !s.has_braces)
      return add_reindex(values[0], s.axes, s.reads[0], s.write, s.shape);
    Op op{.kind = values.size() == 1 ? OpKind::reduce : OpKind::contract,
          .dtype = dtype_of_products(s),
          .shape = s.shape,
          .inputs = {values.begin(), values.end()},
          .axes = s.axes,
          .reads = s.reads,
          .write = s.write,
          .expr = {}};
    if (!repeats) {
      drop_unused_axes(op);  // names of sizes
      return add(std::move(op));
    }

    // What is computed has a dimension for each axis of the operands that the result has, and for
    // each brace.
    op.write.clear();
    op.shape = {};
    std::vector<Axis> axes = s.axes;
    Access read, write = s.write;
    for (std::size_t d = 0; d < s.write.size(); ++d) {
      const std::optional<Size> extent = extent_of(s.write[d], s.axes);
      const bool is_group =
          extent && ask_equal(*extent, s.shape[d]) && ask_equal(s.write[d].offset, 0);
      if (!is_group) {
        write[d] = {0, {{static_cast<int>(axes.size()), 1}}};
        axes.push_back({"place", s.shape[d]});
        read.push_back(write[d]);
        op.write.push_back(s.write[d]);
        op.shape.push_back(s.shape[d]);
        continue;
      }
      for (const DimIndex::Term& term : s.write[d].terms) {
        if (is_new[static_cast<std::size_t>(term.axis)]) continue;
        read.push_back({0, {{term.axis, 1}}});
        op.write.push_back(read.back());
        op.shape.push_back(s.axes[static_cast<std::size_t>(term.axis)].size);
      }
    }
    drop_unused_axes(op);
    return add_reindex(add(std::move(op)), axes, read, write, s.shape);
  }

  ValueId pack() {
    const PackedPattern p(call_.pattern, shapes_[0].rank());
    const std::vector<Shape> middles = packed_shapes(call_.pattern, shapes_);
    std::vector<ValueId> parts;
    Size total = 0;
    Shape shape;
    for (std::size_t k = 0; k < values_.size(); ++k) {
      const Shape& from = shapes_[k];
      const std::vector<Axis> axes = axes_of(from);
      const Access write = packed_access(p, axes);
      shape = shape_of(write, axes);
      if (add_overflows(total, shape[p.before.size()], total)) {
        fail(ErrorKind::overflow, "pack", "the packed axis is longer than 2^63 - 1",
             call_.pattern.text, {{p.star->span, ""}}, {show_operands(shapes_)});
      }
      parts.push_back(add_reindex(values_[k], axes, plain_access(from.rank()), write, shape));
    }
    shape[p.before.size()] = total;
    require_fits(shape, mark_dims(call_.pattern, call_.pattern.sides[0]));
    if (parts.size() == 1) return parts[0];
    return add({.kind = OpKind::concat,
                .dtype = dtype(),
                .shape = shape,
                .inputs = std::move(parts),
                .dim = static_cast<int>(p.before.size())});
  }

  void unpack() {
    const Shape& from = shapes_[0];
    const PackedPattern p(call_.pattern, from.rank());
    if (from.rank() != p.named() + 1) {
      fail(ErrorKind::rank, "unpack",
           "operand 1 has " + count_axes(from.rank()) + ", the pattern wants " +
               (p.ellipsis ? "at least " : "") + std::to_string(p.named() + 1),
           call_.pattern.text, mark_dims(call_.pattern, call_.pattern.sides[0]),
           {show_operands(shapes_)});
    }
    const std::vector<Shape> pieces = resolved_pieces(from[p.before.size()], p);
    Size offset = 0;
    for (const Shape& piece : pieces) {
      std::vector<Axis> axes;
      Shape shape;
      const auto add_axis = [&](const std::string& name, Size size) {
        axes.push_back({name, size});
        shape.push_back(size);
      };
      for (std::size_t d = 0; d < p.before.size(); ++d)
        add_axis(axis_name(p.before[d], d), from[d]);
      for (std::size_t d = 0; d < piece.rank(); ++d) add_axis("*" + std::to_string(d), piece[d]);
      for (std::size_t d = 0; d < p.after.size(); ++d)
        add_axis(axis_name(p.after[d], d), from[p.before.size() + 1 + d]);
      require_fits(shape, {{p.star->span, ""}});
      Access read = packed_access(p, axes);
      DimIndex& packed = read[p.before.size()];
      const Size extent = shape_of({packed}, axes)[0];
      // An empty piece at the end begins where nothing is; it reads nothing, so any place will do.
      if (!extent.is_number() || extent > 0) packed.offset = offset;
      offset += extent;
      graph_.outputs.push_back(
          add_reindex(values_[0], axes, read, plain_access(axes.size()), shape));
    }
  }

  /// The axes of a piece, of which those that are packed are one dimension.
  static Access packed_access(const PackedPattern& p, const std::vector<Axis>& axes) {
    const std::size_t first = p.before.size(), count = axes.size() - p.named();
    Access access = plain_access(first);
    access.push_back(joined_dim(axes, first, count));
    const Access after = plain_access(p.after.size(), first + count);
    access.insert(access.end(), after.begin(), after.end());
    return access;
  }

  /// Of the axis at place `d` before or after the '*'.
  std::string axis_name(const Term* term, std::size_t d) const {
    const std::string name(call_.pattern.name_of(*term));
    return term->kind == TermKind::ellipsis ? name + std::to_string(d) : name;
  }

  /// The packed shapes with a -1 replaced by what is left; their sizes must add up to the packed
  /// axis.
  std::vector<Shape> resolved_pieces(Size size, const PackedPattern& p) const {
    std::vector<Shape> pieces(call_.packed_shapes.begin(), call_.packed_shapes.end());
    std::string list;
    for (const Shape& piece : pieces) list += (list.empty() ? "" : ", ") + piece.to_string();
    const auto complain = [&](ErrorKind kind, const std::string& what) {
      fail(kind, "unpack", what, call_.pattern.text, {{p.star->span, to_string(size)}},
           {show_operands(shapes_), "packed: " + (list.empty() ? "none" : list)});
    };
    Size* open = nullptr;
    std::size_t open_piece = 0;
    Size total = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      Size extent = 1;
      for (Size& n : pieces[i]) {
        if (ask_equal(n, -1) && !open) {
          open = &n;
          open_piece = i;
          continue;
        }
        if (ask_equal(n, -1))
          complain(ErrorKind::inference, "the packed shapes have more than one -1");
        if (n < 0)
          complain(ErrorKind::value,
                   "a packed shape has the size " + to_string(n) + ", which is negative");
        if (multiply_overflows(extent, n, extent)) {
          complain(ErrorKind::overflow, "a packed shape has more than 2^63 - 1 elements");
        }
      }
      const bool is_open = open && open_piece == i;
      if (!is_open && add_overflows(total, extent, total)) {
        complain(ErrorKind::overflow, "the packed shapes have more than 2^63 - 1 elements");
      }
    }
    if (open) {
      Size others = 1;
      for (Size n : pieces[open_piece]) others *= ask_equal(n, -1) ? Size(1) : n;
      if (total > size || ask_equal(others, 0) || !ask_equal((size - total) % others, 0)) {
        complain(ErrorKind::divisibility, "the packed axis of size " + to_string(size) +
                                              " cannot be shared out to the packed shapes");
      }
      *open = (size - total) / others;
    } else if (!ask_equal(total, size)) {
      complain(ErrorKind::size, "the packed shapes have " + to_string(total) +
                                    " elements along '*', operand 1 has " + to_string(size));
    }
    return pieces;
  }

  const PatternCall& call_;
  std::span<const OperandType> operands_;
  bool stacked_;
  Graph graph_;
  std::vector<ValueId> values_;
  std::vector<Shape> shapes_;
};

}  // namespace

void require_valid(const PatternCall& call, std::size_t operands) {
  if (call.is_checked) return;
  const auto mistake = grammar::check_pattern(
      call.op, call.pattern, operands, axis_names(call.sizes), false, call.lone_sums, call.results);
  if (mistake) fail(call.op, call.pattern, mistake, call.sizes);
}

std::vector<std::string_view> axis_names(std::span<const AxisSize> given) {
  std::vector<std::string_view> names;
  for (const AxisSize& size : given) {
    if (!size.is_number) names.push_back(size.name);
  }
  return names;
}

void require_numbers(Operation op, grammar::PatternBuffer& buffer, std::string_view text,
                     std::span<const AxisSize> given) {
  std::vector<grammar::GivenNumber> numbers;
  for (const AxisSize& size : given) {
    if (size.is_number) numbers.push_back({size.name, std::int64_t{size.size}, false});
  }
  if (const auto mistake = grammar::put_numbers(buffer, text, numbers))
    fail(op, buffer.pattern(text), mistake, given);
}

bool fits_memory(const Shape& shape, std::size_t element_bytes) {
  Size bytes = element_bytes;
  // A size of 0 counts as 1, so that the product of any of the sizes fits as well.
  return std::none_of(shape.begin(), shape.end(), [&](Size size) {
    return size.is_number() && multiply_overflows(bytes, std::max<Size>(size, 1), bytes);
  });
}

Graph build_graph(const PatternCall& call, std::span<const OperandType> operands) {
  if (call.pattern.has_many()) {
    std::vector<Shape> shapes;
    for (const OperandType& operand : operands) shapes.push_back(operand.shape);
    const SpreadPattern spread(call.op, call.pattern, shapes,
                               call.stacked && call.pattern.inputs().size() == 1);
    PatternCall written = call;
    written.pattern = spread.pattern();
    return build_graph(written, operands);
  }
  const bool is_named = grammar::form_of(call.op).brackets != grammar::Form::no_brackets;
  return is_named ? build_named_graph(call, operands) : CallGraph(call, operands).build();
}

std::vector<std::pair<std::string, Size>> solve_shape(const Pattern& given, const Shape& shape) {
  if (const auto mistake = grammar::check_pattern(Operation::parse_shape, given, 1)) {
    fail(Operation::parse_shape, given, mistake, {});
  }
  std::vector<std::pair<std::string, Size>> sizes;
  const SpreadPattern spread(Operation::parse_shape, given, std::span(&shape, 1));
  const Pattern& pattern = spread.pattern();
  const Solved solved = solve(Operation::parse_shape, pattern, std::span(&shape, 1), {});
  for (const Term& term : pattern.terms) {
    if (term.kind != TermKind::name) continue;
    const auto axis = std::find_if(solved.axes.begin(), solved.axes.end(),
                                   [&](const Axis& a) { return a.name == pattern.name_of(term); });
    sizes.emplace_back(axis->name, axis->size);
  }
  return sizes;
}

std::vector<Shape> packed_shapes(const Pattern& pattern, std::span<const Shape> shapes) {
  const PackedPattern p(pattern, shapes.empty() ? 0 : shapes[0].rank());
  const std::size_t least = p.named() + (p.ellipsis ? 1 : 0);
  std::vector<Shape> packed;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    const Shape& shape = shapes[k];
    const auto complain = [&](const std::string& wanted) {
      fail(ErrorKind::rank, "pack",
           "operand " + std::to_string(k + 1) + " has " + count_axes(shape.rank()) + ", " + wanted,
           pattern.text, mark_dims(pattern, pattern.sides[0]), {show_operands(shapes)});
    };
    if (p.ellipsis && k > 0 && shape.rank() != shapes[0].rank()) {
      complain("operand 1 has " + std::to_string(shapes[0].rank()) +
               ": beside '...' '*' is one axis of each");
    }
    if (shape.rank() < least) complain("the pattern wants at least " + std::to_string(least));
    const std::size_t middle = shape.rank() - p.named();
    packed.emplace_back(std::span(shape.begin() + p.before.size(), middle));
    const auto require_same = [&](const Term* term, Size mine, Size first) {
      if (ask_equal(mine, first)) return;
      fail(ErrorKind::size, "pack",
           "axis '" + std::string(pattern.name_of(*term)) + "' has two sizes: " + to_string(first) +
               " in operand 1, " + to_string(mine) + " in operand " + std::to_string(k + 1),
           pattern.text, {{term->span, to_string(first) + " / " + to_string(mine)}},
           {show_operands(shapes)});
    };
    for (std::size_t d = 0; d < p.before.size(); ++d)
      require_same(p.before[d], shape[d], shapes[0][d]);
    const std::size_t offset = p.before.size() + middle;
    const std::size_t offset0 = shapes[0].rank() - p.after.size();
    for (std::size_t d = 0; d < p.after.size(); ++d) {
      require_same(p.after[d], shape[offset + d], shapes[0][offset0 + d]);
    }
  }
  return packed;
}

}  // namespace ein
