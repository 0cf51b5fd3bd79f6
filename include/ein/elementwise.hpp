// Arithmetic on elements, with NumPy's broadcasting: shapes are aligned at the right, and a size of
// 1 stretches. Dtypes promote as ein::promote says; a plain number takes the tensor's dtype, but a
// fraction makes an integer tensor f32. Division and the functions below make integers f32.
//
// Integers are computed in i64, u64 in u64, and stored modulo 2^bits. u64 has no negative numbers:
// one beside it is an Error of kind `dtype`.
#pragma once

#include <ein/detail/element_functions.hpp>
#include <ein/tensor.hpp>

namespace ein {

/// A tensor or a number.
class Operand {
 public:
  Operand(const Tensor& tensor) : tensor_(&tensor), number_(0) {}
  Operand(Scalar number) : number_(number) {}
  template <class T>
  requires(std::is_arithmetic_v<T> || detail::ComplexNumber<T>) Operand(T number)
      : number_(number) {}
  const Tensor* tensor() const { return tensor_; }
  Scalar number() const { return number_; }

 private:
  const Tensor* tensor_ = nullptr;
  Scalar number_;
};

Tensor add(Operand a, Operand b);
Tensor sub(Operand a, Operand b);
Tensor mul(Operand a, Operand b);
Tensor div(Operand a, Operand b);
Tensor pow(Operand base, Operand exponent);
/// a - b * floor(a / b), as PyTorch's remainder: it has the sign of b, and where it is 0 that of a;
/// it is NaN, or 0 for integers, where b is 0.
Tensor remainder(Operand a, Operand b);
/// a / b rounded down, as NumPy's floor_divide: exact for integers, and a = b · floor_divide(a, b)
/// + remainder(a, b). Where b is 0 it is 0 for integers, a / b for floats.
Tensor floor_divide(Operand a, Operand b);
/// log(exp(a) + exp(b)) without overflow in between: max(a, b) + log1p(exp(-|a - b|)).
Tensor logaddexp(Operand a, Operand b);
Tensor atan2(Operand y, Operand x);  ///< the angle of the point (x, y), from -π to π
Tensor hypot(Operand a, Operand b);  ///< √(a² + b²), without overflow in between
/// NaN where either is NaN.
Tensor minimum(Operand a, Operand b);
Tensor maximum(Operand a, Operand b);

// Comparisons and logical operations give bool.
Tensor less(Operand a, Operand b);
Tensor less_equal(Operand a, Operand b);
Tensor greater(Operand a, Operand b);
Tensor greater_equal(Operand a, Operand b);
Tensor equal(Operand a, Operand b);
Tensor not_equal(Operand a, Operand b);
Tensor logical_and(Operand a, Operand b);
Tensor logical_or(Operand a, Operand b);
Tensor logical_not(const Tensor& x);

// Of the bits of integers and bool; floats are an Error of kind `dtype`. A shift to the right of
// unsigned numbers brings in zeros, of others the sign. A shift by less than 0, or by 64 and more,
// leaves 0, or -1 of a negative number shifted right.
Tensor bitwise_and(Operand a, Operand b);
Tensor bitwise_or(Operand a, Operand b);
Tensor bitwise_xor(Operand a, Operand b);
Tensor bitwise_not(const Tensor& x);
Tensor left_shift(Operand a, Operand b);
Tensor right_shift(Operand a, Operand b);

/// a where the condition is not zero, else b.
Tensor where(const Tensor& condition, Operand a, Operand b);

Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);  ///< -1, 0 or 1; of NaN, NaN
// To whole numbers; integers stay as they are. Their slope is 0.
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);  ///< halves to the even neighbour
Tensor trunc(const Tensor& x);
// These give bool.
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);

Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);  ///< 1 / √x
Tensor exp(const Tensor& x);
Tensor exp2(const Tensor& x);
Tensor expm1(const Tensor& x);  ///< exp(x) - 1, exact near 0
Tensor log(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log1p(const Tensor& x);  ///< log(1 + x), exact near 0
Tensor sin(const Tensor& x);    ///< angles are in radians
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor erfinv(const Tensor& x);       ///< erf(erfinv(x)) = x; infinite at -1 and 1, NaN beyond
Tensor sigmoid(const Tensor& x);      ///< 1 / (1 + exp(-x))
Tensor relu(const Tensor& x);         ///< max(x, 0)
Tensor softplus(const Tensor& x);     ///< log(1 + exp(x))
Tensor log_sigmoid(const Tensor& x);  ///< log(sigmoid(x)), exact where sigmoid(x) is near 0 or 1
/// x · Φ(x), with the normal distribution function Φ (Hendrycks & Gimpel 2016); at -infinity its
/// limit, -0.
Tensor gelu(const Tensor& x);
Tensor silu(const Tensor& x);  ///< x · sigmoid(x); at -infinity its limit, -0
/// min(max(x, low), high), NaN where any of them is; bounds are tensors, which broadcast, or
/// numbers, an Error of kind `value` unless low <= high. Of tensors with low > high it is high. The
/// gradient goes to x from low to high, both included, and else to the bound that x is beyond.
Tensor clamp(const Tensor& x, Operand low, Operand high);

/// Matrix product of the last two axes, broadcasting those before, as NumPy's matmul; a vector
/// counts as a row on the left and as a column on the right. An Error of kind `size` or `rank` that
/// names the shapes.
Tensor matmul(const Tensor& a, const Tensor& b);

Tensor operator-(const Tensor& x);
inline Tensor operator~(const Tensor& x) { return bitwise_not(x); }
#define EIN_OPERATOR(name, function, result)                                      \
  inline Tensor name(const Tensor& a, const Tensor& b) { return function(a, b); } \
  inline Tensor name(const Tensor& a, Scalar b) { return function(a, b); }        \
  inline Tensor name(Scalar a, const Tensor& b) { return function(a, b); }
EIN_FOR_EACH_OPERATOR(EIN_OPERATOR)
#undef EIN_OPERATOR

/// Whether two tensors have the same shape and dtype, and every element of `a` is within
/// absolute + relative · |b| of b's (0 and 0: equal; NaN never is).
bool all_close(const Tensor& a, const Tensor& b, double relative = 1e-5, double absolute = 1e-8);

}  // namespace ein
