#include <ein/elementwise.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include <ein/autocast.hpp>
#include <ein/complex.hpp>
#include <ein/create.hpp>
#include <ein/detail/element_result.hpp>
#include <ein/error.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>
#include "graph/named.hpp"
#include "runtime/map.hpp"

namespace ein {
namespace {

using Result = detail::ElementResult;

/// The inputs of a map, its tensors apart from its numbers.
class Arguments {
 public:
  Ex add(const Operand& operand) {
    if (!operand.tensor()) {
      const Scalar number = operand.number();
      if (number.is_complex())
        throw Error(ErrorKind::dtype, "a complex number stands where a real one is wanted");
      numbers_fractional_ |= !number.is_integer() && !number.is_large_integer();
      has_large_number_ |= number.is_large_integer();
      if (number.is_integer() && number.integer() < 0) negative_ = number.integer();
      has_number_ = true;
      if (number.is_large_integer())
        return Ex::unsigned_integer(static_cast<std::uint64_t>(number.integer()));
      if (const auto formula = number.formula()) return Ex::size(*formula);
      return number.is_integer() ? Ex::integer(number.integer()) : Ex(number.real());
    }
    dtype_ = tensors_ == 0 ? operand.tensor()->dtype() : promote(dtype_, operand.tensor()->dtype());
    return add_condition(*operand.tensor());
  }
  /// An input whose dtype does not take part in promotion.
  Ex add_condition(const Tensor& tensor) {
    operands_[tensors_] = &tensor;
    return Ex::input(static_cast<int>(tensors_++));
  }
  /// The dtype in which elements are computed.
  DType dtype(Result result) const {
    const bool fractional = numbers_fractional_ || (has_large_number_ && dtype_ != DType::u64);
    if (tensors_ == 0) return fractional || result == Result::floating ? DType::f32 : DType::i64;
    if (result == Result::boolean) result = Result::same;  // of the comparison itself
    if (dtype_ == DType::boolean && has_number_ && !fractional && result != Result::floating)
      return DType::i64;
    return detail::element_result(fractional ? Result::floating : result, dtype_);
  }
  /// A negative number among the operands, if there is one.
  std::optional<std::int64_t> negative() const { return negative_; }
  engine::Operands operands() const { return {operands_, tensors_}; }

 private:
  const Tensor* operands_[3] = {};
  std::size_t tensors_ = 0;
  DType dtype_ = DType::boolean;
  bool numbers_fractional_ = false;
  bool has_large_number_ = false;
  bool has_number_ = false;
  std::optional<std::int64_t> negative_;
};

Tensor run(std::string_view what, const Arguments& arguments, const Ex& formula, Result result) {
  const DType dtype = arguments.dtype(result);
  if (dtype == DType::u64 && arguments.negative()) {
    throw Error(ErrorKind::dtype,
                std::string(what) + ": u64 has no " + std::to_string(*arguments.negative()) +
                    "\n  help: cast first, x.to(ein::DType::i64) or x.to(ein::DType::f64)");
  }
  const DType to = result == Result::boolean ? DType::boolean : dtype;
  return engine::map(what, formula, arguments.operands(), compute_type(dtype), to);
}

void require_whole(std::string_view what, const Operand& a, const Operand& b) {
  for (const Operand* operand : {&a, &b}) {
    const bool is_whole =
        operand->tensor() ? is_integral(operand->tensor()->dtype())
                          : operand->number().is_integer() || operand->number().is_large_integer();
    if (is_whole) continue;
    throw Error(ErrorKind::dtype,
                std::string(what) + ": wants integers or bool, got " +
                    (operand->tensor() ? std::string(name(operand->tensor()->dtype()))
                                       : show(operand->number())));
  }
}

/// A complex number as a tensor, beside another operand.
std::optional<Tensor> complex_tensor(const Operand& number, const Operand& beside) {
  if (number.tensor() || !number.number().is_complex()) return std::nullopt;
  const Tensor* const x = beside.tensor();
  return full({}, number.number(), complex_dtype(x ? x->dtype() : DType::f32),
              x ? x->device() : cpu);
}

Tensor binary(std::string_view what, ScalarOp op, const Operand& a, const Operand& b,
              Result result) {
  if (const auto x = complex_tensor(a, b)) return binary(what, op, *x, b, result);
  if (const auto x = complex_tensor(b, a)) return binary(what, op, a, *x, result);
  if (result == Result::bits) require_whole(what, a, b);
  Arguments arguments;
  const Ex left = arguments.add(a);
  const Ex right = arguments.add(b);
  return run(what, arguments, Ex::apply(op, left, right), result);
}

/// A function of one tensor, given as a formula of its element.
template <class Formula>
Tensor unary(std::string_view what, const Tensor& x, Result result, Formula formula) {
  Arguments arguments;
  const Ex element = arguments.add(x);
  return run(what, arguments, formula(element), result);
}
Tensor function(std::string_view what, ScalarOp op, const Tensor& x) {
  return unary(what, x, Result::floating, [&](const Ex& e) { return Ex::apply(op, e); });
}

}  // namespace

#define EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, \
                   cuda)                                                                      \
  Tensor function(Operand a, Operand b) {                                                     \
    return binary(#function, ScalarOp::name, a, b, Result::result);                           \
  }
#define EIN_BINARY_OF_PASSES(name, text, cost, function, result, reference, host, adjoint_a, \
                             adjoint_b, cuda)
#include <ein/detail/binary_functions.hpp>

Tensor bitwise_not(const Tensor& x) {
  if (x.dtype() == DType::boolean) return logical_not(x);
  if (x.dtype() == DType::u64) return bitwise_xor(x, ~std::uint64_t{0});
  return binary("bitwise_not", ScalarOp::bit_xor, x, -1, Result::bits);
}
Tensor logical_not(const Tensor& x) {
  return unary("logical_not", x, Result::boolean,
               [](const Ex& e) { return Ex::apply(ScalarOp::logical_not, e); });
}

Tensor where(const Tensor& condition, Operand a, Operand b) {
  if (const auto x = complex_tensor(a, b.tensor() ? b : Operand(condition)))
    return where(condition, *x, b);
  if (const auto x = complex_tensor(b, a.tensor() ? a : Operand(condition)))
    return where(condition, a, *x);
  Arguments arguments;
  const Ex left = arguments.add(a);
  const Ex right = arguments.add(b);
  // A fraction is no zero, though it is one in the integers or the narrower floats of the result.
  const DType compute = real_dtype(compute_type(arguments.dtype(Result::same)));
  const DType part = real_dtype(condition.dtype());
  const bool may_vanish =
      is_floating(part) && compute_type(part) != compute && compute != DType::f64;
  const Tensor asked = may_vanish ? not_equal(condition, 0) : condition;
  const Ex test = arguments.add_condition(asked);
  return run("where", arguments, where(test, left, right), Result::same);
}

Tensor operator-(const Tensor& x) {
  return unary("neg", x, Result::same, [](const Ex& e) { return Ex::apply(ScalarOp::neg, e); });
}
Tensor abs(const Tensor& x) {
  if (is_complex(x.dtype())) {
    const Tensor* const operand = &x;
    return engine::map("abs", Ex::apply(ScalarOp::abs, Ex::input(0)), {&operand, 1},
                       compute_type(x.dtype()), real_dtype(x.dtype()));
  }
  return unary("abs", x, Result::same, [](const Ex& e) { return Ex::apply(ScalarOp::abs, e); });
}
namespace {
/// A rounding, which leaves integers as they are.
Tensor rounded(std::string_view what, ScalarOp op, const Tensor& x) {
  return unary(what, x, Result::same,
               [&](const Ex& e) { return is_integral(x.dtype()) ? e : Ex::apply(op, e); });
}
}  // namespace

#define EIN_FUNCTION(name, reference, host, adjoint, cuda) \
  Tensor name(const Tensor& x) { return function(#name, ScalarOp::name, x); }
#define EIN_ROUNDING(name, reference, host, adjoint, cuda) \
  Tensor name(const Tensor& x) { return rounded(#name, ScalarOp::name, x); }
#define EIN_CONVERSION(name, reference, host, adjoint, cuda)
#include <ein/detail/scalar_functions.hpp>

Tensor sign(const Tensor& x) {
  return unary("sign", x, Result::same, [](const Ex& e) {
    const Ex zero = Ex::integer(0);
    const Ex level = where(Ex::apply(ScalarOp::eq, e, zero), zero, e);  // of -0 as well
    const Ex below = where(Ex::apply(ScalarOp::lt, e, zero), Ex::integer(-1), level);
    return where(Ex::apply(ScalarOp::gt, e, zero), Ex::integer(1), below);
  });
}
namespace {
/// A question about floating-point numbers, whose answer for integers is known.
template <class Formula>
Tensor question(std::string_view what, const Tensor& x, bool of_integers, Formula formula) {
  const auto answer = [&](const Ex& e) {
    return !is_integral(x.dtype()) ? formula(e)
           : of_integers           ? Ex::apply(ScalarOp::eq, e, e)
                                   : Ex::apply(ScalarOp::ne, e, e);
  };
  return unary(what, x, Result::boolean, answer);
}
}  // namespace
Tensor isnan(const Tensor& x) {
  return question("isnan", x, false, [](const Ex& e) { return Ex::apply(ScalarOp::ne, e, e); });
}
Tensor isinf(const Tensor& x) {
  return question("isinf", x, false, [](const Ex& e) {
    return Ex::apply(ScalarOp::eq, Ex::apply(ScalarOp::abs, e), Ex(INFINITY));
  });
}
Tensor isfinite(const Tensor& x) {
  // The absolute value of finite parts may overflow.
  if (is_complex(x.dtype())) return isfinite(real(x)) && isfinite(imag(x));
  return question("isfinite", x, true, [](const Ex& e) {
    return Ex::apply(ScalarOp::lt, Ex::apply(ScalarOp::abs, e), Ex(INFINITY));
  });
}
Tensor relu(const Tensor& x) {
  // A selection, whose slope at 0 is 0; that of a maximum is 1/2.
  return unary("relu", x, Result::same, [](const Ex& e) {
    const Ex zero = Ex::integer(0);
    return where(Ex::apply(ScalarOp::le, e, zero), zero, e);
  });
}
Tensor softplus(const Tensor& x) {
  return unary("softplus", x, Result::floating,
               [](const Ex& e) { return Ex::apply(ScalarOp::logaddexp, e, Ex(0.0)); });
}
Tensor log_sigmoid(const Tensor& x) {
  return unary("log_sigmoid", x, Result::floating, [](const Ex& e) {
    const Ex opposite = Ex::apply(ScalarOp::neg, e);
    return Ex::apply(ScalarOp::neg, Ex::apply(ScalarOp::logaddexp, opposite, Ex(0.0)));
  });
}
Tensor clamp(const Tensor& x, Operand low, Operand high) {
  if (!low.tensor() && !high.tensor()) {
    const Scalar a = low.number(), b = high.number();
    const bool whole = a.is_integer() && b.is_integer();
    if (whole ? a.integer() > b.integer() : !(a.real() <= b.real())) {
      throw Error(ErrorKind::value,
                  "clamp: wants low <= high, got low = " + show(a) + ", high = " + show(b));
    }
  }
  Arguments arguments;
  const Ex element = arguments.add(x);
  const auto bound = [&](const Operand& operand, ScalarOp beyond, const Ex& value) {
    const Ex limit = arguments.add(operand);
    const Ex is_beyond = Ex::apply(beyond, value, limit);
    const bool may_be_nan = operand.tensor() && is_floating(operand.tensor()->dtype());
    const Ex is_nan = Ex::apply(ScalarOp::ne, limit, limit);
    const Ex takes_limit =
        may_be_nan ? Ex::apply(ScalarOp::logical_or, is_beyond, is_nan) : is_beyond;
    return where(takes_limit, limit, value);
  };
  // Not min and max, which share the slope of a tie: that is x's.
  const Ex raised = bound(low, ScalarOp::lt, element);
  return run("clamp", arguments, bound(high, ScalarOp::gt, raised), Result::same);
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  const std::string shapes = "shapes " + a.shape().to_string() + " and " + b.shape().to_string();
  if (a.rank() == 0 || b.rank() == 0)
    throw Error(ErrorKind::rank, "matmul: wants no scalars, got " + shapes);
  if (a.dtype() != b.dtype() && !autocast_dtype()) {
    throw Error(ErrorKind::dtype,
                "matmul: operands have different dtypes: " + std::string(name(a.dtype())) +
                    " and " + std::string(name(b.dtype())) + "\n  help: cast one with .to(dtype)");
  }
  const Size inner = b.shape()[b.rank() == 1 ? 0 : b.rank() - 2];
  if (a.shape().back() != inner) {
    throw Error(ErrorKind::size, "matmul: " + to_string(a.shape().back()) + " columns meet " +
                                     to_string(inner) + " rows in " + shapes);
  }
  for (std::size_t d = 3; d <= std::min(a.rank(), b.rank()); ++d) {
    const Size m = a.shape()[a.rank() - d], n = b.shape()[b.rank() - d];
    if (m == n || m == 1 || n == 1) continue;
    throw Error(ErrorKind::size, "matmul: the axes before the matrices do not broadcast, " +
                                     to_string(m) + " meets " + to_string(n) + " in " + shapes);
  }
  if (a.rank() == 1 && b.rank() == 1) return einsum(a, b, "k, k ->");
  if (a.rank() == 1) return einsum(a, b, "k, ... k j -> ... j");
  if (b.rank() == 1) return einsum(a, b, "... i k, k -> ... i");
  return einsum(a, b, "... i k, ... k j -> ... i j");
}

namespace {
/// Of tensors of the same shape and dtype that are copied to be compared.
bool are_all_close(const Tensor& a, const Tensor& b, double relative, double absolute) {
  const auto is_close = [&](double difference, double y) {
    return difference <= absolute + relative * std::abs(y);
  };
  const auto are_close = [&]<class T>(std::type_identity<T>) {
    const std::vector<T> x = a.to_vector<T>(), y = b.to_vector<T>();
    return std::equal(x.begin(), x.end(), y.begin(), [&](T u, T v) {
      const std::uint64_t difference =
          u > v ? static_cast<std::uint64_t>(u) - static_cast<std::uint64_t>(v)
                : static_cast<std::uint64_t>(v) - static_cast<std::uint64_t>(u);
      return is_close(static_cast<double>(difference), static_cast<double>(v));
    });
  };
  if (a.dtype() == DType::u64) return are_close(std::type_identity<std::uint64_t>{});
  if (is_integral(a.dtype())) return are_close(std::type_identity<std::int64_t>{});
  if (is_complex(a.dtype())) {
    const auto x = a.to(DType::c128).to_vector<std::complex<double>>(),
               y = b.to(DType::c128).to_vector<std::complex<double>>();
    return std::equal(x.begin(), x.end(), y.begin(), [&](auto u, auto v) {
      return u == v || (std::isfinite(std::abs(v)) && is_close(std::abs(u - v), std::abs(v)));
    });
  }
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return std::equal(x.begin(), x.end(), y.begin(), [&](double u, double v) {
    return u == v || (std::isfinite(v) && is_close(std::abs(u - v), v));
  });
}
}  // namespace

bool all_close(const Tensor& a, const Tensor& b, double relative, double absolute) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return false;
  // So many at a time: the copies stay in the cache.
  constexpr std::int64_t at_once = 1 << 15;
  const std::int64_t size = a.numel();
  if (size <= at_once) return are_all_close(a, b, relative, absolute);
  const Tensor x = a.detach().reshape({size}), y = b.detach().reshape({size});
  for (std::int64_t first = 0; first < size; first += at_once) {
    const Slice part = slice(first, std::min(size, first + at_once));
    if (!are_all_close(x.at({part}), y.at({part}), relative, absolute)) return false;
  }
  return true;
}

}  // namespace ein
