#include "graph/named.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "size/ask.hpp"

namespace ein {

using grammar::Term;
using grammar::TermKind;

NamedBuild::NamedBuild(const PatternCall& call, std::span<const OperandType> operands, Combine how)
    : call_(call), operands_(operands.begin(), operands.end()), how_(how) {
  for (const OperandType& operand : operands) {
    shapes_.push_back(operand.shape);
    values_.push_back(
        append(graph_, {.kind = OpKind::input, .dtype = operand.dtype, .shape = operand.shape}));
  }
  solved_ = checked();
  split_sides();
}

Solved NamedBuild::checked() const {
  require_valid(call_, operands_.size());
  const std::size_t described = call_.pattern.inputs().size();
  const std::size_t weights = info(call_.op).weights;
  if (operands_.size() != described && operands_.size() != described + weights) {
    fail(ErrorKind::arity, name(call_.op),
         std::string(name(call_.op)) + " takes " + std::to_string(described) +
             (weights > 0 ? " or " + std::to_string(described + weights) : "") +
             (described + weights == 1 ? " operand" : " operands") + ", the call has " +
             std::to_string(operands_.size()),
         call_.pattern.text, {});
  }
  return solve(call_.op, call_.pattern, shapes_, call_.sizes);
}

void NamedBuild::complain(ErrorKind kind, const std::string& what, const std::vector<Mark>& marks,
                          const std::string& help) const {
  std::vector<std::string> notes{show_operands(shapes_)};
  if (!help.empty()) notes.push_back("help: " + help);
  fail(kind, name(call_.op), what, call_.pattern.text, marks, notes);
}

void NamedBuild::require_floating(std::size_t operand) const {
  if (is_floating(dtype(operand))) return;
  complain(ErrorKind::dtype,
           "a floating-point dtype is wanted, operand " + std::to_string(operand + 1) + " holds " +
               std::string(name(dtype(operand))),
           {}, "cast first, x.to(ein::DType::f32)");
}

std::vector<Mark> NamedBuild::marks_of_brackets() const {
  std::vector<Mark> marks;
  for (const Term& term : call_.pattern.terms) {
    if (!term.marked) continue;
    const auto axis = std::find_if(solved_.axes.begin(), solved_.axes.end(), [&](const Axis& a) {
      return a.name == call_.pattern.name_of(term);
    });
    const bool has_size = term.kind != TermKind::ellipsis && axis != solved_.axes.end();
    marks.push_back({term.span, has_size ? to_string(axis->size) : ""});
  }
  return marks;
}

// --- axes in brackets inside a group ---

namespace {

/// Calls f(first term, how many dimensions it stands for, whether these are a group with axes in
/// brackets) along a side of which an operand or a result has `rank` dimensions.
template <class F>
void for_each_word(const grammar::Pattern& pattern, const grammar::Side& side, std::size_t rank,
                   F&& f) {
  std::size_t words = 0;
  for (std::uint32_t i = side.first; i < side.last; i = pattern.terms[i].next) ++words;
  for (std::uint32_t i = side.first; i < side.last; i = pattern.terms[i].next) {
    const Term& word = pattern.terms[i];
    const bool is_split =
        std::any_of(pattern.terms.begin() + i + 1, pattern.terms.begin() + word.next,
                    [](const Term& member) { return member.marked; });
    f(i, word.kind == TermKind::ellipsis ? rank + 1 - words : 1, is_split);
  }
}

bool is_split(const grammar::Pattern& pattern, const grammar::Side& side) {
  bool found = false;
  for_each_word(pattern, side, 0,
                [&](std::uint32_t, std::size_t, bool is_split) { found |= is_split; });
  return found;
}

}  // namespace

Place NamedBuild::split(const grammar::Side& side, const Place& whole) const {
  Place result;
  std::size_t d = 0;
  for_each_word(call_.pattern, side, whole.access.size(),
                [&](std::uint32_t, std::size_t count, bool is_split) {
                  for (const std::size_t end = d + count; d < end; ++d) {
                    if (!is_split) {
                      result.access.push_back(whole.access[d]);
                      result.shape.push_back(whole.shape[d]);
                      continue;
                    }
                    for (const DimIndex::Term& term : whole.access[d].terms) {
                      result.access.push_back({0, {{term.axis, 1}}});
                      result.shape.push_back(size_of_axis(term.axis));
                    }
                  }
                });
  return result;
}

void NamedBuild::split_sides() {
  const std::span<const grammar::Side> inputs = call_.pattern.inputs();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!is_split(call_.pattern, inputs[k])) continue;
    const NamedValue whole = operand(k);
    const Place place = split(inputs[k], {whole.access, shapes_[k]});
    values_[k] = reindex(whole, place, solved_.axes).id;
    solved_.reads[k] = place.access;
    operands_[k].shape = place.shape;
  }
  if (!call_.pattern.has_arrow() || !is_split(call_.pattern, call_.pattern.output())) return;
  joined_ = result();
  const Place place = split(call_.pattern.output(), joined_);
  solved_.write = place.access;
  solved_.shape = place.shape;
}

ValueId NamedBuild::joined(std::size_t which, const NamedValue& result) {
  const grammar::Pattern& pattern = call_.pattern;
  if (pattern.has_arrow()) {
    if (!is_split(pattern, pattern.output())) return result.id;
    return reindex({result.id, solved_.write}, joined_, solved_.axes).id;
  }
  if (!is_split(pattern, pattern.sides[0])) return result.id;
  const grammar::MarkedAxes& fates = info(call_.op).axes[keeps_axis() ? 1 : which];
  const auto count_at = [&](std::uint32_t term) -> std::size_t {
    const grammar::MarkedAxes::Fate fate = grammar::fate_of(pattern, fates, term);
    return fate == grammar::MarkedAxes::dropped ? 0 : fate == grammar::MarkedAxes::doubled ? 2 : 1;
  };
  const std::vector<Axis> axes = axes_of(graph_.op(result.id).shape);
  Access write;
  std::size_t d = 0;
  for_each_word(pattern, pattern.sides[0], shapes_[0].rank(),
                [&](std::uint32_t i, std::size_t count, bool is_split) {
                  count *= count_at(i);
                  if (!is_split || count == 0) {
                    for (; count > 0; --count) write.push_back({0, {{static_cast<int>(d++), 1}}});
                    return;
                  }
                  std::size_t members = 0;
                  for (std::uint32_t j = i + 1; j < pattern.terms[i].next; ++j)
                    members += pattern.terms[j].is_axis() ? count_at(j) : 0;
                  write.push_back(joined_dim(axes, d, members));
                  d += members;
                });
  const Shape shape = shape_of(write, axes);
  return reindex({result.id, plain_access(axes.size())}, {write, shape}, axes).id;
}

// --- axes ---

NamedValue NamedBuild::operand(std::size_t k) const { return {values_[k], solved_.reads[k]}; }

NamedValue NamedBuild::positions(std::size_t k) {
  const DType dtype = operands_[k].dtype;
  if (dtype == DType::i64 || dtype == DType::i32) return operand(k);
  if (is_integral(dtype) && dtype != DType::boolean) {
    // One of u64 that i64 lacks becomes a negative one, which is outside as well.
    const DType wide = size_of(dtype) < 4 ? DType::i32 : DType::i64;
    return map({operand(k)}, Ex::input(0), {solved_.reads[k], operands_[k].shape}, wide,
               compute_type(dtype));
  }
  complain(ErrorKind::dtype,
           "positions are integers, operand " + std::to_string(k + 1) + " holds " +
               std::string(name(dtype)),
           {mark_side(call_.pattern, call_.pattern.sides[k], std::string(name(dtype)))});
}

Place NamedBuild::rows(const Access& access) const {
  Place place;
  for (const DimIndex& dim : access) {
    for (const DimIndex::Term& term : dim.terms) {
      if (solved_.marked[static_cast<std::size_t>(term.axis)]) continue;
      place.access.push_back({0, {{term.axis, 1}}});
      place.shape.push_back(size_of_axis(term.axis));
    }
  }
  return place;
}

Place NamedBuild::marked() const {
  Place place;
  for (const DimIndex& dim : solved_.reads[0]) {
    if (dim.terms.empty() || !solved_.marked[static_cast<std::size_t>(dim.terms[0].axis)]) continue;
    place.access.push_back(dim);
    place.shape.push_back(size_of_axis(dim.terms[0].axis));
  }
  return place;
}

Place NamedBuild::unmarked() const {
  const Place all = full();
  const std::vector<std::size_t> dims = marked_dims();
  Place place;
  for (std::size_t d = 0; d < all.access.size(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
    place.access.push_back(all.access[d]);
    place.shape.push_back(all.shape[d]);
  }
  return place;
}

std::vector<std::size_t> NamedBuild::marked_dims() const {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < solved_.reads[0].size(); ++d) {
    const std::vector<DimIndex::Term>& terms = solved_.reads[0][d].terms;
    if (!terms.empty() && solved_.marked[static_cast<std::size_t>(terms[0].axis)])
      dims.push_back(d);
  }
  return dims;
}

std::vector<Size> NamedBuild::of_each_axis(std::span<const Size> numbers,
                                           std::string_view what) const {
  const std::size_t axes = marked_dims().size();
  if (numbers.size() == 1) return std::vector<Size>(axes, numbers[0]);
  if (numbers.size() != axes) {
    complain(ErrorKind::arity,
             std::to_string(numbers.size()) + " " + std::string(what) + " are given for " +
                 count_axes(axes) + " in brackets",
             marks_of_brackets(), "give one for each axis, or one for all");
  }
  return {numbers.begin(), numbers.end()};
}

int NamedBuild::marked_axis() const {
  const auto found = std::find(solved_.marked.begin(), solved_.marked.end(), 1);
  return static_cast<int>(found - solved_.marked.begin());
}

int NamedBuild::marked_dim(const Access& access) const {
  const auto found = std::find(access.begin(), access.end(), DimIndex{0, {{marked_axis(), 1}}});
  return static_cast<int>(found - access.begin());
}

std::vector<Size> NamedBuild::marked_sizes() const {
  std::vector<Size> sizes;
  for (std::size_t a = 0; a < solved_.axes.size(); ++a) {
    if (solved_.marked[a]) sizes.push_back(solved_.axes[a].size);
  }
  return sizes;
}

// --- operations ---

NamedValue NamedBuild::map(const std::vector<NamedValue>& inputs, const Ex& formula,
                           const Place& place, DType dtype, DType compute) {
  Op op = op_of(OpKind::map, inputs, place, dtype);
  op.expr = formula;
  op.compute = compute;
  return add(std::move(op));
}

NamedValue NamedBuild::reduce(Combine how, const NamedValue& from, const Place& place,
                              DType dtype) {
  Op op = op_of(OpKind::reduce, {from}, place, dtype);
  op.combine = how;
  return add(std::move(op));
}

NamedValue NamedBuild::reindex(const NamedValue& from, const Place& place, std::vector<Axis> axes) {
  Op op = op_of(OpKind::reindex, {from}, place, graph_.op(from.id).dtype);
  op.axes = std::move(axes);
  return add(std::move(op));
}

NamedValue NamedBuild::concat(const std::vector<NamedValue>& parts, std::size_t dim,
                              const Place& place) {
  if (parts.size() == 1) return parts[0];
  Op op{.kind = OpKind::concat, .dtype = graph_.op(parts[0].id).dtype, .shape = place.shape};
  for (const NamedValue& part : parts) op.inputs.push_back(part.id);
  op.dim = static_cast<int>(dim);
  return {add(std::move(op)).id, place.access};
}

NamedValue NamedBuild::argsort(bool descending) {
  Op op = op_of(OpKind::argsort, {operand(0)}, full(), DType::i64);
  op.axis = marked_axis();
  op.reverse = descending;
  return add(std::move(op));
}

NamedValue NamedBuild::stationary(const NamedValue& value) {
  const Op& of = graph_.op(value.id);
  Op op = op_of(OpKind::reindex, {value}, {value.access, of.shape}, of.dtype);
  op.marks.stationary = true;
  return add(std::move(op));
}

NamedValue NamedBuild::gather(const NamedValue& x, const NamedValue& positions, const Place& place,
                              std::vector<Axis> axes, bool picks_classes) {
  Op op = op_of(OpKind::gather, {x, positions}, place, graph_.op(x.id).dtype);
  op.dim = marked_dim(x.access);
  op.reads[0][static_cast<std::size_t>(op.dim)].terms.clear();
  op.axes = std::move(axes);
  op.marks.picks_classes = picks_classes;
  return add(std::move(op));
}

NamedValue NamedBuild::add(Op op) {
  if (!fits_memory(op.shape, size_of(op.dtype))) {
    complain(ErrorKind::overflow,
             "a tensor of shape " + op.shape.to_string() + " needs more than 2^63 - 1 bytes");
  }
  const Access access = op.write;
  if (op.axes.empty()) op.axes = solved_.axes;
  drop_unused_axes(op);
  return {append(graph_, std::move(op)), access};
}

std::string show(Scalar number) {
  if (const auto formula = number.formula()) return to_string(*formula);
  if (number.is_integer()) return std::to_string(number.integer());
  if (number.is_large_integer())
    return std::to_string(static_cast<std::uint64_t>(number.integer()));
  return show(number.real());
}
std::string show(double number) {
  char text[32];
  return {text, std::to_chars(text, std::end(text), number).ptr};
}

Ex element(const NamedBuild& b, Scalar value, DType dtype) {
  const bool is_large = value.is_large_integer() && dtype == DType::u64;
  const bool is_whole = value.is_integer() || is_large;
  const bool is_negative = value.is_integer() && value.integer() < 0;
  if (value.is_complex())
    b.complain(ErrorKind::dtype, "a complex number stands where a real one is wanted");
  if (is_integral(dtype) && (!is_whole || (is_negative && dtype == DType::u64))) {
    b.complain(ErrorKind::dtype, std::string(name(dtype)) + " cannot hold " + show(value));
  }
  if (const auto formula = value.formula()) return Ex::size(*formula);
  if (is_large) return Ex::unsigned_integer(static_cast<std::uint64_t>(value.integer()));
  return is_whole ? Ex::integer(value.integer()) : Ex(value.real());
}

Graph NamedBuild::finish(std::span<const NamedValue> results) {
  for (std::size_t which = 0; which < results.size(); ++which)
    graph_.outputs.push_back(joined(which, results[which]));
  verify(graph_);
  return std::move(graph_);
}

Graph no_builder(NamedBuild& b) {
  throw std::logic_error(std::string(name(b.call().op)) + ": an operation without brackets");
}

Graph build_named_graph(const PatternCall& call, std::span<const OperandType> operands) {
  switch (call.op) {
#define EIN_CASE(name, builder, combine, ...)           \
  case Operation::name: {                               \
    NamedBuild graph(call, operands, Combine::combine); \
    return builder(graph);                              \
  }
    EIN_FOR_EACH_OPERATION(EIN_CASE)
#undef EIN_CASE
  }
  throw std::logic_error("build_named_graph: no operation");
}

}  // namespace ein
