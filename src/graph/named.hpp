// The graphs of operations that mark axes with brackets.
#pragma once

#include "graph/build.hpp"
#include "graph/call.hpp"
#include "graph/solve.hpp"
#include "tensor/compute_type.hpp"

namespace ein {

/// The verified graph of a call of such an operation: one input per operand, one output per result.
/// Every mistake in the call is an Error.
Graph build_named_graph(const PatternCall& call, std::span<const OperandType> operands);

/// The graph of one call while it is built. Accesses and axes are numbered as in the solved
/// pattern; each operation gets those of them that it uses. A dimension that has axes in brackets
/// inside a group, `(h [d])`, is split: operands and results have a dimension for each of its axes,
/// and finish() joins those of the results.
class NamedBuild {
 public:
  NamedBuild(const PatternCall& call, std::span<const OperandType> operands, Combine how);

  const PatternCall& call() const { return call_; }
  const Solved& solved() const { return solved_; }
  Combine how() const { return how_; }  // of what combines
  std::size_t operand_count() const { return operands_.size(); }
  const OperandType& operand_type(std::size_t k) const { return operands_[k]; }
  DType dtype(std::size_t operand = 0) const { return operands_[operand].dtype; }
  /// The dtype of the result of a sum, as the call says it or by itself; and the dtype that the sum
  /// itself has: both are floating-point or neither is.
  DType result_dtype() const {
    return call_.named.dtype.value_or(
        ein::result_dtype(call_.op, call_.pattern, Reduction::sum, dtype()));
  }
  DType sum_dtype() const { return dtype_to_combine(dtype(), result_dtype()); }
  /// The type in which floats are computed: f64 or f32.
  DType wide() const { return dtype() == DType::f64 ? DType::f64 : DType::f32; }
  NamedValue operand(std::size_t k) const;
  /// An operand that holds positions, as i64 or i32; an Error unless it holds integers.
  NamedValue positions(std::size_t k);
  Size size_of_axis(int axis) const { return solved_.axes[static_cast<std::size_t>(axis)].size; }

  /// The dimensions of the first operand.
  Place full() const { return {solved_.reads[0], operands_[0].shape}; }
  /// One dimension for each axis of an access that is not in brackets.
  Place rows(const Access& access) const;
  Place rows() const { return rows(solved_.reads[0]); }
  /// The dimensions of the result, where the pattern has an arrow.
  Place result() const { return {solved_.write, solved_.shape}; }
  /// The axis in brackets, if it is one; and the dimension of an access that is along it alone.
  int marked_axis() const;
  int marked_dim(const Access& access) const;
  /// The dimensions of the first operand that are in brackets, and those that are not.
  Place marked() const;
  Place unmarked() const;
  /// The numbers of these dimensions.
  std::vector<std::size_t> marked_dims() const;
  /// What the call says of each of these axes, numbers that it has once or once for each; an Error
  /// for another number of `what`.
  std::vector<Size> of_each_axis(std::span<const Size> numbers, std::string_view what) const;
  /// The one number that the call says: which diagonal, how many samples or bins.
  Size number() const { return call_.named.numbers.empty() ? Size(0) : call_.named.numbers[0]; }
  /// Whether several quantiles lie along the axis in brackets.
  bool keeps_axis() const {
    return call_.named.keeps_axis || (call_.op == Operation::quantile && call_.named.reals.empty());
  }
  /// The number of elements along all axes in brackets.
  std::vector<Size> marked_sizes() const;

  NamedValue map(const std::vector<NamedValue>& inputs, const Ex& formula, const Place& place,
                 DType dtype, DType compute);
  NamedValue map(const std::vector<NamedValue>& inputs, const Ex& formula, const Place& place) {
    return map(inputs, formula, place, wide(), wide());
  }
  /// The value in another dtype; itself where it has that already.
  NamedValue converted(const NamedValue& value, const Place& place, DType dtype) {
    const DType from = graph_.op(value.id).dtype;
    return from == dtype ? value
                         : map({value}, Ex::input(0), place, dtype, conversion_type(from, dtype));
  }
  NamedValue reduce(Combine how, const NamedValue& from, const Place& place, DType dtype);
  /// `from` in other places.
  NamedValue reindex(const NamedValue& from, const Place& place, std::vector<Axis> axes);
  /// Values that lie one behind the other along dimension `dim` of `place`.
  NamedValue concat(const std::vector<NamedValue>& parts, std::size_t dim, const Place& place);
  /// The positions along the axis in brackets that put the first operand in order.
  NamedValue argsort(bool descending);
  /// x at positions along the dimension that the axis in brackets has in x; see
  /// Marks::picks_classes.
  NamedValue gather(const NamedValue& x, const NamedValue& positions, const Place& place,
                    std::vector<Axis> axes, bool picks_classes = false);
  /// Adds an operation; its axes are the pattern's unless it names others of as many.
  NamedValue add(Op op);
  /// The same value to whom its slope does not matter: see Marks::stationary.
  NamedValue stationary(const NamedValue& value);
  void detach(const NamedValue& value) {
    graph_.ops[static_cast<std::size_t>(value.id)].marks.detached = true;
  }

  void require_floating(std::size_t operand = 0) const;
  /// Throws an Error about the call; the notes end with the operands' shapes.
  [[noreturn]] void complain(ErrorKind kind, const std::string& what,
                             const std::vector<Mark>& marks = {},
                             const std::string& help = "") const;
  /// The terms in brackets, with their sizes.
  std::vector<Mark> marks_of_brackets() const;

  Graph finish(std::span<const NamedValue> results);
  Graph finish(std::initializer_list<NamedValue> results) {
    return finish({results.begin(), results.size()});
  }

 private:
  Solved checked() const;
  /// The dimensions of a side with one for each axis of a group that has brackets.
  Place split(const grammar::Side& side, const Place& whole) const;
  void split_sides();
  /// Result number `which` in the dimensions of its side.
  ValueId joined(std::size_t which, const NamedValue& result);

  const PatternCall& call_;
  std::vector<OperandType> operands_;
  Combine how_;
  std::vector<Shape> shapes_;    // as the call has them
  std::vector<ValueId> values_;  // of the operands, split
  Solved solved_;
  Place joined_;  // the output's dimensions, where they are split
  Graph graph_;
};

/// Operand k, which has the axes in brackets; an Error that names it as `what` where it has another
/// shape, or is wider than what operand 1 is computed in.
NamedValue weight(const NamedBuild& b, std::size_t k, std::string_view what);
void require_no_wider(const NamedBuild& b, std::size_t k, std::string_view what);

// One builder for each operation, or for several, in the files of this room.
#define EIN_BUILDER(name, builder, ...) Graph builder(NamedBuild&);
EIN_FOR_EACH_OPERATION(EIN_BUILDER)
#undef EIN_BUILDER

/// A number as a person writes it.
std::string show(Scalar number);
std::string show(double number);
/// `value` as a constant of `dtype`. An Error of the call if the dtype has no such number.
Ex element(const NamedBuild& b, Scalar value, DType dtype);

}  // namespace ein
