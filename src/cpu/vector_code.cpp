#if EIN_ASMJIT
#include "cpu/vector_code.hpp"

#include <stdexcept>
#include <type_traits>

#include "cpu/emitted.hpp"
#include "cpu/short_forms.hpp"
#include "size/ask.hpp"

namespace ein::host {

bool has_vector_code(ScalarOp op, DType compute) {
  if (!is_floating(compute)) return false;
  switch (op) {
    case ScalarOp::input:
    case ScalarOp::constant:
    case ScalarOp::index:
    case ScalarOp::size:
    case ScalarOp::neg:
    case ScalarOp::abs:
    case ScalarOp::logical_not:
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt:
    case ScalarOp::floor:
    case ScalarOp::ceil:
    case ScalarOp::round:
    case ScalarOp::trunc:
    case ScalarOp::exp:
    case ScalarOp::log:
    case ScalarOp::tanh:
    case ScalarOp::sigmoid:
    case ScalarOp::silu:
    case ScalarOp::normal_cdf:
    case ScalarOp::gelu:
    case ScalarOp::gelu_slope:
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::div:
    case ScalarOp::min:
    case ScalarOp::max:
    case ScalarOp::lt:
    case ScalarOp::le:
    case ScalarOp::gt:
    case ScalarOp::ge:
    case ScalarOp::eq:
    case ScalarOp::ne:
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
    case ScalarOp::where:
    case ScalarOp::as_bf16:
    case ScalarOp::as_f16:
      return true;
    case ScalarOp::erf:
      return compute == DType::f32;
    default:
      return false;
  }
}

bool is_of_many_instructions(ScalarOp op) {
  switch (op) {
    case ScalarOp::exp:
    case ScalarOp::log:
    case ScalarOp::tanh:
    case ScalarOp::erf:
    case ScalarOp::sigmoid:
    case ScalarOp::silu:
    case ScalarOp::normal_cdf:
    case ScalarOp::gelu:
    case ScalarOp::gelu_slope:
      return true;
    default:
      return false;
  }
}

namespace {

using Vector = Assembler::Vector;
using Mask = Assembler::Mask;

/// Of two numbers, where x is NaN or beyond y, x.
Vector extreme(Assembler& code, Assembler::Arithmetic op, const Vector& x, const Vector& y) {
  return code.select(code.is_nan(x, x), x, code.apply(op, x, y));
}

template <class C>
Vector emit_in(Assembler& code, ScalarOp op, bool short_form, const Vector& x, const Vector& y,
               const Vector& z) {
  using Op = Assembler::Arithmetic;
  const Emitted<C> number(code, x);
  if constexpr (std::is_same_v<C, float>) {
    if (short_form) return with_short_form(op, [&](auto f) { return f(number).vector(); });
  }
  const auto zero = Assembler::Operand(C(0));
  const auto one_if = [&](const Mask& mask) {
    return code.select(mask, code.constant(1), code.constant(0));
  };
  if (is_comparison(op)) return one_if(code.compare(op, x, y));
  switch (op) {
    case ScalarOp::neg:
      return (-number).vector();
    case ScalarOp::abs:
      return magnitude(number).vector();
    case ScalarOp::sqrt:
      return code.square_root(x);
    case ScalarOp::floor:
      return code.whole(Assembler::Rounding::down, x);
    case ScalarOp::ceil:
      return code.whole(Assembler::Rounding::up, x);
    case ScalarOp::round:
      return code.whole(Assembler::Rounding::to_even, x);
    case ScalarOp::trunc:
      return code.whole(Assembler::Rounding::to_zero, x);
    case ScalarOp::rsqrt:
      return code.apply(Op::divide, Assembler::Operand(C(1)), code.square_root(x));
    case ScalarOp::exp:
      return functions::exp(number).vector();
    case ScalarOp::log:
      return functions::log(number).vector();
    case ScalarOp::tanh:
      return functions::tanh(number).vector();
    case ScalarOp::erf:
      if constexpr (std::is_same_v<C, float>) return functions::erf(number).vector();
      break;
    case ScalarOp::sigmoid:
      return functions::sigmoid(number).vector();
    case ScalarOp::silu:
      return functions::silu(number).vector();
    case ScalarOp::normal_cdf:
      return functions::normal_cdf(number).vector();
    case ScalarOp::gelu:
      return functions::gelu(number).vector();
    case ScalarOp::gelu_slope:
      return functions::gelu_slope(number).vector();
    case ScalarOp::add:
      return code.apply(Op::add, x, y);
    case ScalarOp::sub:
      return code.apply(Op::subtract, x, y);
    case ScalarOp::mul:
      return code.apply(Op::multiply, x, y);
    case ScalarOp::div:
      return code.apply(Op::divide, x, y);
    case ScalarOp::min:
      return extreme(code, Op::least, x, y);
    case ScalarOp::max:
      return extreme(code, Op::largest, x, y);
    case ScalarOp::logical_not:
      return one_if(code.compare(ScalarOp::eq, x, zero));
    case ScalarOp::logical_and:
    case ScalarOp::logical_or: {
      const Mask a = code.compare(ScalarOp::ne, x, zero), b = code.compare(ScalarOp::ne, y, zero);
      return one_if(op == ScalarOp::logical_and ? code.both(a, b) : code.either(a, b));
    }
    case ScalarOp::where:
      return code.select(code.compare(ScalarOp::ne, x, zero), y, z);
    case ScalarOp::as_bf16:
      return code.rounded(x, DType::bf16);
    case ScalarOp::as_f16:
      return code.rounded(x, DType::f16);
    default:
      break;
  }
  throw std::logic_error("vector code: an operation that it lacks");
}

}  // namespace

Vector emit_operation(Assembler& code, ScalarOp op, bool short_form, const Vector& x,
                      const Vector& y, const Vector& z) {
  return code.compute() == DType::f64 ? emit_in<double>(code, op, short_form, x, y, z)
                                      : emit_in<float>(code, op, short_form, x, y, z);
}

}  // namespace ein::host
#endif
