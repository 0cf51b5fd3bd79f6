// The table of functions of two numbers: one row each. Define what you need and include this file;
// there is no include guard. It undefines what you defined.
//
//   EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, cuda)
//   EIN_BINARY_OF_FLOATS(the same)      which integers lack: they are converted first; EIN_BINARY
//                                       where you do not define it
//   EIN_BINARY_OF_INTEGERS(the same)    which floats lack; EIN_BINARY where you do not define it
//   EIN_BINARY_OF_PASSES(the same)      which only passes write, and no function of tensors is made
//                                       of; EIN_BINARY where you do not define it
//
//   name       of ScalarOp
//   text       in formulas: a sign, or the name of a function
//   cost       its CostClass
//   function   `Tensor function(Operand, Operand)`, which elementwise.hpp declares
//   result     of what dtype: `same` as the operands', `floating`, `boolean`, or `bits`, the same
//              and of integers and bool alone
//   reference  its value at the numbers `a` and `b`, for the interpreter: doubles or what has the
//              same vocabulary
//   host       its value at `x` and `y` of type C, for the loops of the CPU. Vector code is
//              optional: has_vector_code
//   adjoint_a  of each argument, an Ex or `none`: `g` is the adjoint of the value, `a` and `b` the
//              arguments, `v` the value
//   cuda       infix(" < ") for a < b, library("pow") for powf(a, b) and pow(a, b), own("power")
//              for power(a, b), of the vocabulary of our kernels, arithmetic(" + ", "plus") for a +
//              b and plus(a, b), which wraps, comparison(" < ") and questions(" && ") for 0 or 1
#ifndef EIN_BINARY
#define EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, cuda)
#endif
#ifndef EIN_BINARY_OF_FLOATS
#define EIN_BINARY_OF_FLOATS EIN_BINARY
#endif
#ifndef EIN_BINARY_OF_INTEGERS
#define EIN_BINARY_OF_INTEGERS EIN_BINARY
#endif
#ifndef EIN_BINARY_OF_PASSES
#define EIN_BINARY_OF_PASSES EIN_BINARY
#endif
// clang-format off
EIN_BINARY(add, "+", addition, add, same, a + b, plus(x, y), g, g, arithmetic(" + ", "plus"))
EIN_BINARY(sub, "-", addition, sub, same, a - b, minus(x, y), g, negated(g),
    arithmetic(" - ", "minus"))
EIN_BINARY(mul, "*", multiplication, mul, same, a * b, times(x, y), product(g, b), product(g, a),
    arithmetic(" * ", "times"))
EIN_BINARY_OF_FLOATS(div, "/", division, div, floating, a / b, x / y, g / b,
    negated(product(g, v) / b), infix(" / "))
EIN_BINARY(pow, "pow", transcendental, pow, same, pow(a, b), power(x, y), slope_of_base(g, a, b),
    slope_of_exponent(g, a, b, v), floats ? library("pow") : own("power"))
// Of (y, x).
EIN_BINARY_OF_FLOATS(atan2, "atan2", transcendental, atan2, floating, atan2(a, b), std::atan2(x, y),
    turn(g, b, a, b), negated(turn(g, a, a, b)), library("atan2"))
EIN_BINARY_OF_FLOATS(hypot, "hypot", transcendental, hypot, floating, hypot(a, b), std::hypot(x, y),
    product(g, a / v), product(g, b / v), library("hypot"))
EIN_BINARY(remainder, "remainder", division, remainder, same, remainder(a, b), rest(x, y), g,
    negated(product(g, f(ScalarOp::floor_divide, a, b))), own("remainder_of"))
EIN_BINARY(floor_divide, "floor_divide", division, floor_divide, same, floor_divide(a, b),
    floor_quotient(x, y), Ex(0.0), Ex(0.0), own("floor_quotient"))
EIN_BINARY_OF_FLOATS(logaddexp, "logaddexp", transcendental, logaddexp, floating, logaddexp(a, b),
    log_add_exp(x, y), product(g, f(ScalarOp::sigmoid, a - b)),
    product(g, f(ScalarOp::sigmoid, b - a)), own("log_add_exp"))
EIN_BINARY(min, "min", comparison, minimum, same, minimum(a, b), x != x || x < y ? x : y,
    chosen(ScalarOp::gt, g, a, b), chosen(ScalarOp::lt, g, a, b), own("least"))
EIN_BINARY(max, "max", comparison, maximum, same, maximum(a, b), x != x || x > y ? x : y,
    chosen(ScalarOp::lt, g, a, b), chosen(ScalarOp::gt, g, a, b), own("greatest"))
EIN_BINARY(lt, "<", comparison, less, boolean, Number(a < b), C(x < y), none, none,
    comparison(" < "))
EIN_BINARY(le, "<=", comparison, less_equal, boolean, Number(a <= b), C(x <= y), none, none,
    comparison(" <= "))
EIN_BINARY(gt, ">", comparison, greater, boolean, Number(a > b), C(x > y), none, none,
    comparison(" > "))
EIN_BINARY(ge, ">=", comparison, greater_equal, boolean, Number(a >= b), C(x >= y), none, none,
    comparison(" >= "))
EIN_BINARY(eq, "==", comparison, equal, boolean, Number(a == b), C(x == y), none, none,
    comparison(" == "))
EIN_BINARY(ne, "!=", comparison, not_equal, boolean, Number(a != b), C(x != y), none, none,
    comparison(" != "))
EIN_BINARY(logical_and, "and", comparison, logical_and, boolean, both(a, b),
    C((x != C(0)) & (y != C(0))), none, none, questions(" && "))
EIN_BINARY(logical_or, "or", comparison, logical_or, boolean, either(a, b),
    C((x != C(0)) | (y != C(0))), none, none, questions(" || "))
EIN_BINARY_OF_INTEGERS(bit_and, "&", comparison, bitwise_and, bits, on_bits(a, b, std::bit_and<>()),
    x & y, none, none, infix(" & "))
EIN_BINARY_OF_INTEGERS(bit_or, "|", comparison, bitwise_or, bits, on_bits(a, b, std::bit_or<>()),
    x | y, none, none, infix(" | "))
EIN_BINARY_OF_INTEGERS(bit_xor, "^", comparison, bitwise_xor, bits, on_bits(a, b, std::bit_xor<>()),
    x ^ y, none, none, infix(" ^ "))
EIN_BINARY_OF_INTEGERS(shift_left, "<<", comparison, left_shift, bits, on_bits(a, b, shifted_left),
    shifted_left(x, y), none, none, own("shifted_left"))
EIN_BINARY_OF_INTEGERS(shift_right, ">>", comparison, right_shift, bits,
    on_bits(a, b, shifted_right), shifted_right(x, y), none, none, own("shifted_right"))
// A value whose derivative is given, not that of its formula: with_slope(value, along(x, ∂value/∂x)
// + along(y, ∂value/∂y)). without_slopes() leaves the value, before anything is counted or run.
EIN_BINARY_OF_PASSES(with_slope, "with_slope", none, none, same, a, (static_cast<void>(y), x), none,
    g, a)
EIN_BINARY_OF_PASSES(along, "along", none, none, same, a, (static_cast<void>(y), x), product(g, b),
    none, a)
// clang-format on
#undef EIN_BINARY_OF_PASSES
#undef EIN_BINARY_OF_INTEGERS
#undef EIN_BINARY_OF_FLOATS
#undef EIN_BINARY
