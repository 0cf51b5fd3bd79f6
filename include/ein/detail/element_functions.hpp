// The functions of elements that elementwise.hpp declares, in one list each: typed_ops.hpp has
// them for typed tensors, map.hpp as values and with patterns.
#pragma once

// clang-format off
/// X(function, result): of one tensor; what dtype the result has is an ElementResult.
#define EIN_FOR_EACH_UNARY(X)                               \
  X(sign, same)                                             \
  X(floor, same)                                            \
  X(ceil, same)                                             \
  X(round, same)                                            \
  X(trunc, same)                                            \
  X(relu, same)                                             \
  X(bitwise_not, same)                                      \
  X(isnan, boolean)                                         \
  X(isinf, boolean)                                         \
  X(isfinite, boolean)                                      \
  X(logical_not, boolean)                                   \
  X(sqrt, floating)                                         \
  X(rsqrt, floating)                                        \
  X(exp, floating)                                          \
  X(exp2, floating)                                         \
  X(expm1, floating)                                        \
  X(log, floating)                                          \
  X(log2, floating)                                         \
  X(log1p, floating)                                        \
  X(sin, floating)                                          \
  X(cos, floating)                                          \
  X(tan, floating)                                          \
  X(asin, floating)                                         \
  X(acos, floating)                                         \
  X(atan, floating)                                         \
  X(sinh, floating)                                         \
  X(cosh, floating)                                         \
  X(tanh, floating)                                         \
  X(erf, floating)                                          \
  X(erfinv, floating)                                       \
  X(sigmoid, floating)                                      \
  X(softplus, floating)                                     \
  X(log_sigmoid, floating)                                  \
  X(gelu, floating)                                         \
  X(silu, floating)

/// X(function, result): of two operands.
#define EIN_FOR_EACH_BINARY(X)                              \
  X(add, same)                                              \
  X(sub, same)                                              \
  X(mul, same)                                              \
  X(pow, same)                                              \
  X(remainder, same)                                        \
  X(floor_divide, same)                                     \
  X(minimum, same)                                          \
  X(maximum, same)                                          \
  X(bitwise_and, same)                                      \
  X(bitwise_or, same)                                       \
  X(bitwise_xor, same)                                      \
  X(left_shift, same)                                       \
  X(right_shift, same)                                      \
  X(div, floating)                                          \
  X(logaddexp, floating)                                    \
  X(atan2, floating)                                        \
  X(hypot, floating)                                        \
  X(less, boolean)                                          \
  X(less_equal, boolean)                                    \
  X(greater, boolean)                                       \
  X(greater_equal, boolean)                                 \
  X(equal, boolean)                                         \
  X(not_equal, boolean)                                     \
  X(logical_and, boolean)                                   \
  X(logical_or, boolean)

/// X(operator, function, result): as signs; the function of this name computes it.
#define EIN_FOR_EACH_OPERATOR(X)                            \
  X(operator+, add, same)                                   \
  X(operator-, sub, same)                                   \
  X(operator*, mul, same)                                   \
  X(operator%, remainder, same)                             \
  X(operator&, bitwise_and, same)                           \
  X(operator|, bitwise_or, same)                            \
  X(operator^, bitwise_xor, same)                           \
  X(operator<<, left_shift, same)                           \
  X(operator>>, right_shift, same)                          \
  X(operator/, div, floating)                               \
  X(operator<, less, boolean)                               \
  X(operator<=, less_equal, boolean)                        \
  X(operator>, greater, boolean)                            \
  X(operator>=, greater_equal, boolean)                     \
  X(operator==, equal, boolean)                             \
  X(operator!=, not_equal, boolean)                         \
  X(operator&&, logical_and, boolean)                       \
  X(operator||, logical_or, boolean)
// clang-format on
