#include <ein/create.hpp>

#include <cmath>

#include <ein/complex.hpp>
#include <ein/error.hpp>
#include "backend/backend.hpp"
#include "compile/operand.hpp"
#include "graph/named.hpp"
#include "nest/random.hpp"
#include "runtime/map.hpp"
#include "runtime/mesh.hpp"
#include "runtime/random_state.hpp"
#include "runtime/trace.hpp"
#include "tensor/round.hpp"

namespace ein {
namespace {

Ex constant(Scalar value) {
  if (value.is_large_integer())
    return Ex::unsigned_integer(static_cast<std::uint64_t>(value.integer()));
  if (const auto formula = value.formula()) return Ex::size(*formula);
  return value.is_integer() ? Ex::integer(value.integer()) : Ex(value.real());
}

/// Which type keeps `value` exactly on its way to `dtype`.
DType compute_type_for(Scalar value, DType dtype) {
  const bool is_whole = value.is_integer() || (value.is_large_integer() && dtype == DType::u64);
  return is_whole && is_integral(dtype) ? compute_type(dtype) : DType::f64;
}

void require_floating(const char* what, DType dtype) {
  if (!is_floating(dtype)) {
    throw Error(ErrorKind::dtype, std::string(what) + ": " + std::string(name(dtype)) +
                                      " is not a floating-point dtype");
  }
}

/// The next random stream, for a tensor of this shape and dtype; a call that fails takes none.
Ex next_random_for(const char* what, ScalarOp distribution, const Shape& shape, DType dtype) {
  require_floating(what, dtype);
  checked_numel(shape, static_cast<std::int64_t>(size_of(dtype)));
  return engine::next_random(distribution);
}

}  // namespace

Tensor engine::with_memory(const Shape& shape, DType dtype, Device device) {
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const auto bytes = static_cast<std::size_t>(checked_numel(shape, element) * element);
  return Tensor(engine::backend_of(device).allocate(bytes), dtype, shape,
                contiguous_strides(shape));
}

Tensor empty(const Shape& shape, DType dtype, Device device) {
  engine::Trace* const shapes = engine::Trace::of_shapes();
  if (!shapes) return engine::with_memory(shape, dtype, device);
  checked_numel(shape, static_cast<std::int64_t>(size_of(dtype)));
  return shapes->without_elements(shape, dtype, device);
}

Tensor full(const Shape& shape, Scalar value, DType dtype, Device device) {
  if (value.is_complex()) {
    if (!is_complex(dtype)) {
      throw Error(ErrorKind::dtype, "full: " + std::string(name(dtype)) +
                                        " has no imaginary part\n  help: name c64 or c128");
    }
    const DType part = real_dtype(dtype);
    return complex(full(shape, value.real(), part, device),
                   full(shape, value.imag(), part, device));
  }
  return engine::fill_new(constant(value), shape, compute_type_for(value, dtype), dtype, device);
}
Tensor full_like(const Tensor& x, Scalar value, DType dtype) {
  if (!x.is_placed()) return full(x.shape(), value, dtype, x.device());
  return engine::with_parts(
             x, x.shape(), engine::placement_of(x),
             [&](const Tensor& part) { return full(part.shape(), value, dtype, part.device()); })
      .detach();
}

Tensor zeros(const Shape& shape, DType dtype, Device device) {
  return full(shape, 0, dtype, device);
}
Tensor ones(const Shape& shape, DType dtype, Device device) {
  return full(shape, 1, dtype, device);
}

namespace {

/// How many of start, start + step, ... come before `end`. Exact: differences of 63-bit numbers fit
/// 64 bits.
std::uint64_t count_steps(std::int64_t start, std::int64_t end, std::int64_t step) {
  if (step > 0 ? start >= end : start <= end) return 0;
  const auto from = static_cast<std::uint64_t>(start), to = static_cast<std::uint64_t>(end);
  const std::uint64_t distance = step > 0 ? to - from : from - to;
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  return (distance - 1) / stride + 1;
}

}  // namespace

namespace {
Size length_of(Scalar value) {
  if (const auto formula = value.formula()) return *formula;
  if (!value.is_integer())
    throw Error(ErrorKind::value, "arange: " + show(value.real()) +
                                      " is not whole, and a range with sizes has whole ends");
  return value.integer();
}
}  // namespace

Tensor arange(Scalar start, Scalar end, Scalar step, Device device) {
  const auto complain = [&](const std::string& why) {
    throw Error(ErrorKind::value,
                "arange: from " + show(start) + " to " + show(end) + " by " + show(step) + why);
  };
  if (step.real() == 0 || !std::isfinite(start.real()) || !std::isfinite(end.real()) ||
      !std::isfinite(step.real())) {
    complain(": the step must not be 0, and all three must be finite");
  }
  if (start.formula() || end.formula()) {
    const Size from = length_of(start), to = length_of(end);
    if (!step.is_integer() || step.formula())
      complain(": a range with sizes has a step that is a whole number");
    const Size count = step.integer() > 0 ? (to - from + step.integer() - 1) / step.integer()
                                          : (from - to - step.integer() - 1) / -step.integer();
    if (count < 0) complain(": a range with sizes must not end before it begins");
    return engine::fill_new(constant(start) + Ex::index(0) * constant(step), {count}, DType::i64,
                            DType::i64, device);
  }
  const Ex values = constant(start) + Ex::index(0) * constant(step);
  if (start.is_integer() && end.is_integer() && step.is_integer()) {
    const std::uint64_t count = count_steps(start.integer(), end.integer(), step.integer());
    if (count > INT64_MAX) complain(" has too many elements");
    return engine::fill_new(values, Shape{static_cast<std::int64_t>(count)}, DType::i64, DType::i64,
                            device);
  }
  const double count = std::ceil((end.real() - start.real()) / step.real());
  if (!(count < 0x1p63)) complain(" has too many elements");
  return engine::fill_new(values, Shape{count > 0 ? static_cast<std::int64_t>(count) : 0},
                          DType::f64, DType::f32, device);
}
Tensor arange(Scalar end, Device device) {
  return end.is_integer() ? arange(0, end, 1, device) : arange(0.0, end, 1.0, device);
}

Tensor eye(Size n, DType dtype, Device device) {
  checked_numel({n, n}, static_cast<std::int64_t>(size_of(dtype)));
  const Tensor one = engine::broadcast(ones({}, dtype, device), {n, n});
  const Tensor* operand = &one;
  const Ex on_diagonal = Ex::apply(ScalarOp::eq, Ex::index(0), Ex::index(1));
  return engine::map("eye", where(on_diagonal, Ex::input(0), Ex::integer(0)), {&operand, 1},
                     compute_type(dtype), dtype);
}

Tensor randn(const Shape& shape, DType dtype, Device device) {
  return engine::fill_new(next_random_for("randn", ScalarOp::normal, shape, dtype), shape,
                          DType::f64, dtype, device);
}

Tensor rand(const Shape& shape, DType dtype, Device device) {
  const Ex u = next_random_for("rand", ScalarOp::uniform, shape, dtype);
  // Rounding to a narrower type must not reach 1.
  const double below_one = 1 - finfo(dtype).eps / 2;
  return engine::fill_new(Ex::apply(ScalarOp::min, u, Ex(below_one)), shape, DType::f64, dtype,
                          device);
}

Tensor trunc_normal(const Shape& shape, double std, double a, double b, DType dtype,
                    Device device) {
  require_floating("trunc_normal", dtype);
  if (!(a < b) || !(std > 0) || !std::isfinite(std)) {
    throw Error(ErrorKind::value, "trunc_normal: wants std > 0 and a < b, got std = " + show(std) +
                                      ", a = " + show(a) + ", b = " + show(b));
  }
  // Far out on the right the distribution function has no digits left, on the left it has: mirror.
  const double sign = a > 0 ? -1 : 1;
  const double low = sign > 0 ? a : -b, high = sign > 0 ? b : -a;
  // Rounding to the dtype must not leave [a, b].
  const Bounds inside = bounds_within("trunc_normal", dtype, low, high);
  const Ex u = next_random_for("trunc_normal", ScalarOp::uniform, shape, dtype);
  const double from = random::normal_cdf(low / std), to = random::normal_cdf(high / std);
  // The product is not negative. The maximum keeps it apart from the sum: a processor that computes
  // both as one would round once, and give other numbers than the rest.
  const Ex p = Ex(from) + Ex::apply(ScalarOp::max, u * Ex(to - from), Ex(0.0));
  const Ex x = Ex::apply(ScalarOp::normal_quantile, p) * Ex(std);
  const Ex cut =
      Ex::apply(ScalarOp::min, Ex::apply(ScalarOp::max, x, Ex(inside.least)), Ex(inside.greatest));
  return engine::fill_new(cut * Ex(sign), shape, DType::f64, dtype, device);
}

}  // namespace ein
