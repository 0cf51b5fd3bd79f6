// The table of functions of one number: one row each. Define what you need and include this file;
// there is no include guard. It undefines what you defined.
//
//   EIN_FUNCTION(name, reference, host, adjoint, cuda)    counted as a function of its own
//   EIN_ROUNDING(name, reference, host, adjoint, cuda)    counted as a comparison; EIN_FUNCTION
//                                                         where you do not define it
//   EIN_CONVERSION(name, reference, host, adjoint, cuda)  of passes alone: a value as a dtype would
//                                                         have stored it. Not counted, as casts are
//                                                         not; EIN_FUNCTION where you do not define
//                                                         it
//   EIN_SHORT_FORM(name)                                  a function that has another form where
//                                                         the argument is bf16 or f16 and the
//                                                         result is rounded to one:
//                                                         functions::NAME_of_16_bits
//
//   name       of ScalarOp and in messages; `Tensor name(const Tensor&)` where elementwise.hpp
//              declares it
//   reference  its value at the double `a`, for the interpreter
//   host       its value at `x` of type C, float or double, for the loops of the CPU. Vector code
//              is optional: has_vector_code
//   adjoint    of the argument, an Ex: `g` is the adjoint of the value, `a` the argument, `v` the
//              value
//   cuda       library("sin") for sinf(a) and sin(a), own("silu") for silu(a), of the vocabulary of
//              our kernels, through(DType::bf16) for a as a bf16 and back
#ifndef EIN_FUNCTION
#define EIN_FUNCTION(name, reference, host, adjoint, cuda)
#endif
#ifndef EIN_ROUNDING
#define EIN_ROUNDING EIN_FUNCTION
#endif
#ifndef EIN_CONVERSION
#define EIN_CONVERSION EIN_FUNCTION
#endif
#ifndef EIN_SHORT_FORM
#define EIN_SHORT_FORM(name)
#endif
// clang-format off
// The processor's own roots, which round correctly.
EIN_FUNCTION(sqrt, std::sqrt(a), std::sqrt(x), product(g, Ex(0.5)) / v, library("sqrt"))
EIN_FUNCTION(rsqrt, 1 / std::sqrt(a), 1 / std::sqrt(x), product(g, Ex(-0.5)) * v * (v * v),
    library("rsqrt"))
EIN_FUNCTION(exp, std::exp(a), functions::exp<C>(x), product(g, v), library("exp"))
EIN_FUNCTION(exp2, std::exp2(a), std::exp2(x), product(g, v * Ex(std::numbers::ln2)),
    library("exp2"))
EIN_FUNCTION(expm1, std::expm1(a), std::expm1(x), product(g, f(ScalarOp::exp, a)), library("expm1"))
EIN_FUNCTION(log, std::log(a), functions::log<C>(x), g / a, library("log"))
EIN_FUNCTION(log2, std::log2(a), std::log2(x), product(g, Ex(std::numbers::log2e)) / a,
    library("log2"))
EIN_FUNCTION(log1p, std::log1p(a), std::log1p(x), g / (Ex(1.0) + a), library("log1p"))
EIN_FUNCTION(sin, std::sin(a), std::sin(x), product(g, f(ScalarOp::cos, a)), library("sin"))
EIN_FUNCTION(cos, std::cos(a), std::cos(x), negated(product(g, f(ScalarOp::sin, a))),
    library("cos"))
EIN_FUNCTION(tan, std::tan(a), std::tan(x), product(g, Ex(1.0) + v * v), library("tan"))
// (1 - a)(1 + a): near 1, 1 - a * a has lost its digits.
EIN_FUNCTION(asin, std::asin(a), std::asin(x), g / f(ScalarOp::sqrt, (Ex(1.0) - a) * (Ex(1.0) + a)),
    library("asin"))
EIN_FUNCTION(acos, std::acos(a), std::acos(x),
    negated(g / f(ScalarOp::sqrt, (Ex(1.0) - a) * (Ex(1.0) + a))), library("acos"))
EIN_FUNCTION(atan, std::atan(a), std::atan(x), g / (Ex(1.0) + a * a), library("atan"))
EIN_FUNCTION(sinh, std::sinh(a), std::sinh(x), product(g, f(ScalarOp::cosh, a)), library("sinh"))
EIN_FUNCTION(cosh, std::cosh(a), std::cosh(x), product(g, f(ScalarOp::sinh, a)), library("cosh"))
// In extended precision: some libraries' are off by more than 2 units in the last place.
EIN_FUNCTION(tanh, static_cast<double>(std::tanh(static_cast<long double>(a))),
    functions::tanh<C>(x), product(g, Ex(1.0) - v * v), library("tanh"))
EIN_FUNCTION(erf, std::erf(a), functions::erf(x),
    product(g, Ex(2 * std::numbers::inv_sqrtpi) * f(ScalarOp::exp, negated(a * a))), library("erf"))
EIN_FUNCTION(erfinv, random::erf_inverse(a),
    static_cast<C>(random::erf_inverse(static_cast<double>(x))),
    product(g, Ex(1 / (2 * std::numbers::inv_sqrtpi)) * f(ScalarOp::exp, v * v)), library("erfinv"))
EIN_FUNCTION(sigmoid, logistic(a), functions::sigmoid<C>(x), product(g, v * (Ex(1.0) - v)),
    own("sigmoid"))
EIN_FUNCTION(silu, gated(a), functions::silu<C>(x), slope_of_silu(g, a, v), own("silu"))
EIN_FUNCTION(normal_cdf, normal_probability(a), functions::normal_cdf<C>(x),
    product(g, normal_density(a)), own("normal_cdf"))
EIN_FUNCTION(gelu, gated_normally(a), functions::gelu<C>(x),
    product(g, f(ScalarOp::gelu_slope, a)), own("gelu"))
// The derivative of gelu: the normal distribution function and a times its density share an exp.
EIN_FUNCTION(gelu_slope, slope_of_gated_normally(a), functions::gelu_slope<C>(x),
    product(g, slope_of_gelu_slope(a)), own("gelu_slope"))
EIN_FUNCTION(normal_quantile, random::normal_quantile(a),
    static_cast<C>(random::normal_quantile(static_cast<double>(x))),
    product(g, Ex(std::sqrt(2 * std::numbers::pi)) * f(ScalarOp::exp, v * v * Ex(0.5))),
    own("normal_quantile"))
EIN_ROUNDING(floor, std::floor(a), std::floor(x), Ex(0.0), library("floor"))
EIN_ROUNDING(ceil, std::ceil(a), std::ceil(x), Ex(0.0), library("ceil"))
EIN_ROUNDING(round, std::nearbyint(a), std::nearbyint(x), Ex(0.0), library("rint"))
EIN_ROUNDING(trunc, std::trunc(a), std::trunc(x), Ex(0.0), library("trunc"))
// The interpreter rounds no result to a floating-point dtype, so it does not round here.
EIN_CONVERSION(as_bf16, a, convert<C>(convert<bf16>(x)), g, through(DType::bf16))
EIN_CONVERSION(as_f16, a, convert<C>(convert<f16>(x)), g, through(DType::f16))
EIN_SHORT_FORM(normal_cdf)
EIN_SHORT_FORM(gelu)
EIN_SHORT_FORM(gelu_slope)
// clang-format on
#undef EIN_SHORT_FORM
#undef EIN_CONVERSION
#undef EIN_ROUNDING
#undef EIN_FUNCTION
