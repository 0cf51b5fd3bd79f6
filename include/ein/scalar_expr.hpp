// Scalar expressions: what happens to one element, inside a `map` of the graph and in a loop nest.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ein/detail/fields.hpp>
#include <ein/size.hpp>

namespace ein {

/// The scalar vocabulary. Comparisons and logical operations give 0 or 1. Functions of one number
/// are the table of scalar_functions.hpp, those of two that of binary_functions.hpp.
enum class ScalarOp : std::uint8_t {
  // leaves
  input,
  constant,
  size,
  index,
  uniform,
  normal,
  // unary
  neg,
  abs,
  logical_not,
#define EIN_FUNCTION(name, reference, host, adjoint, cuda) name,
#include <ein/detail/scalar_functions.hpp>
// binary
#define EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, \
                   cuda)                                                                      \
  name,
#include <ein/detail/binary_functions.hpp>
  // ternary
  where,
};

/// What one application costs, in the classes in which work is counted.
enum class CostClass : std::uint8_t {
  none,
  addition,
  multiplication,
  division,
  comparison,
  transcendental
};

/// One row per ScalarOp: its name, number of arguments and cost class.
struct ScalarOpInfo {
  std::string_view name;
  int arity;
  CostClass cost;
};
const ScalarOpInfo& info(ScalarOp op);

/// One step of an expression; `args` are positions of earlier steps.
struct ScalarStep {
  ScalarOp op = ScalarOp::constant;
  int args[3] = {-1, -1, -1};
  int which = 0;             // input: which input; index: which axis
  double real = 0;           // constant
  std::int64_t integer = 0;  // constant, exact in integer expressions
  Size size{};  // size: a formula, which is a constant when the lengths of a call are known
  // uniform, normal: the stream. The index is the element's row-major position, or, in f64, that of
  // args[0].
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  bool of_run = false;  // the seed is the run's, and the stream counts from the run's
  /// A function in its short form, with a relative error of at most 8e-5: its result gets rounded
  /// to bf16 or f16. Engines without one take the function as it is.
  bool short_form = false;
  /// What was at position p is at places[p] now.
  void move_arguments(const std::vector<int>& places) {
    for (int& arg : args) {
      if (arg >= 0) arg = places[static_cast<std::size_t>(arg)];
    }
  }
  EIN_FIELDS(ScalarStep, op, args, which, real, integer, size, seed, stream, of_run, short_form)
  /// Constants are equal if their bits are: 0.0 is not -0.0, and NaN is NaN.
  friend bool operator==(const ScalarStep& a, const ScalarStep& b);
};

/// A straight-line program over the elements at one point of the index space; the last step is the
/// value.
struct ScalarExpr {
  std::vector<ScalarStep> steps;
  /// Whether it is an input as it stands.
  bool is_input() const { return steps.size() == 1 && steps[0].op == ScalarOp::input; }
  EIN_FIELDS(ScalarExpr, steps)
  friend bool operator==(const ScalarExpr&, const ScalarExpr&) = default;
};

/// Building expressions with operators: `Ex x = Ex::input(0); ScalarExpr e = x * x + 1.0;`
class Ex {
 public:
  Ex(double value);
  static Ex input(int which);
  static Ex index(int axis);
  static Ex integer(std::int64_t value);
  /// A number, or a size that only a call knows.
  static Ex size(Size value);
  /// The same of u64 expressions.
  static Ex unsigned_integer(std::uint64_t value);
  /// The value of `expr`, of which steps that it does not need are dropped.
  static Ex of(const ScalarExpr& expr);
  /// The leaves `uniform` (in [0, 1)) and `normal`: number `position` of a counter-based random
  /// stream.
  static Ex random(ScalarOp distribution, std::uint64_t seed, std::uint64_t stream);
  /// The same under the run's seed, with a stream counted from the run's first.
  static Ex random_of_run(ScalarOp distribution, std::uint64_t stream);
  /// The number of a random step at a position below 2^53, in an expression in f64.
  static Ex random_at(ScalarStep random, const Ex& position);
  static Ex apply(ScalarOp op, const Ex& a);
  static Ex apply(ScalarOp op, const Ex& a, const Ex& b);
  static Ex apply(ScalarOp op, const Ex& a, const Ex& b, const Ex& c);

  operator ScalarExpr() const { return expr_; }
  const ScalarExpr& expr() const { return expr_; }

  friend Ex operator+(const Ex& a, const Ex& b) { return apply(ScalarOp::add, a, b); }
  friend Ex operator-(const Ex& a, const Ex& b) { return apply(ScalarOp::sub, a, b); }
  friend Ex operator*(const Ex& a, const Ex& b) { return apply(ScalarOp::mul, a, b); }
  friend Ex operator/(const Ex& a, const Ex& b) { return apply(ScalarOp::div, a, b); }
  /// `a` where `condition` is not 0, else `b`.
  friend Ex where(const Ex& condition, const Ex& a, const Ex& b) {
    return apply(ScalarOp::where, condition, a, b);
  }

 private:
  explicit Ex(const ScalarStep& step) { expr_.steps.push_back(step); }
  explicit Ex(ScalarExpr expr) : expr_(std::move(expr)) {}
  ScalarExpr expr_;
};

/// Whether the expression has random numbers.
bool draws(const ScalarExpr& expr);

/// `outer` with each of its inputs i replaced by `inner[i]`.
ScalarExpr substitute(const ScalarExpr& outer, const std::vector<ScalarExpr>& inner);

/// The expression that computes the same value, without the derivatives that with_slope gives it.
ScalarExpr without_slopes(const ScalarExpr& expr);

/// Written as a formula over x0, x1, ... Long parts that are used more than once have names:
/// `(t0 * t0) with t0 = ...`, in the order in which they are computed.
std::string to_string(const ScalarExpr& expr);

}  // namespace ein
