#include "codegen/expression.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "size/ask.hpp"

namespace ein::codegen {
namespace {

/// Functions of the math library differ by a letter.
std::string call(const char* function, DType compute, const std::string& arguments) {
  return std::string(function) + (compute == DType::f32 ? "f(" : "(") + arguments + ")";
}

std::string as_number(DType compute, const std::string& condition) {
  return element_type(compute) + "(" + condition + ")";
}

std::string operation(ScalarOp op, DType compute, const std::string& a, const std::string& b,
                      const std::string& c) {
  const bool floats = is_floating(compute);
  const std::string zero = literal(compute, 0, 0);
  const std::string arguments = b.empty() ? a : a + ", " + b;
  const auto is_true = [&](const std::string& x) { return x + " != " + zero; };
  const auto library = [&](const char* function) { return call(function, compute, arguments); };
  const auto own = [&](const std::string& function) { return function + "(" + arguments + ")"; };
  const auto through = [&](DType dtype) {
    return converted(converted(a, compute, dtype), dtype, compute);
  };
  const auto infix = [&](const char* sign) { return a + sign + b; };
  const auto arithmetic = [&](const char* sign, const char* wrapping) {
    return is_wrapped(compute) ? own(wrapping) : infix(sign);
  };
  const auto comparison = [&](const char* sign) { return as_number(compute, infix(sign)); };
  const auto questions = [&](const char* sign) {
    return as_number(compute, is_true(a) + sign + is_true(b));
  };
  switch (op) {
    case ScalarOp::neg:
      return is_wrapped(compute) ? "minus(0ll, " + a + ")" : "-" + a;
    case ScalarOp::abs:
      return floats ? library("fabs") : is_wrapped(compute) ? own("absolute") : a;
    case ScalarOp::logical_not:
      return as_number(compute, a + " == " + zero);
    case ScalarOp::where:
      return is_true(a) + " ? " + b + " : " + c;
#define EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, \
                   cuda)                                                                      \
  case ScalarOp::name:                                                                        \
    return cuda;
#define EIN_BINARY_OF_FLOATS(name, text, cost, function, result, reference, host, adjoint_a, \
                             adjoint_b, cuda)                                                \
  case ScalarOp::name:                                                                       \
    if (floats) return cuda;                                                                 \
    break;
#define EIN_BINARY_OF_INTEGERS(name, text, cost, function, result, reference, host, adjoint_a, \
                               adjoint_b, cuda)                                                \
  case ScalarOp::name:                                                                         \
    if (!floats) return cuda;                                                                  \
    break;
#include <ein/detail/binary_functions.hpp>
#define EIN_FUNCTION(name, reference, host, adjoint, cuda) \
  case ScalarOp::name:                                     \
    if (floats) return cuda;                               \
    break;
#include <ein/detail/scalar_functions.hpp>
    default:
      break;
  }
  throw std::logic_error("codegen: " + std::string(info(op).name) + " in " +
                         std::string(name(compute)));
}

std::string hexadecimal(std::uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(bits));
  return text;
}

std::uint64_t bits_of(DType compute, const ScalarStep& constant) {
  if (compute == DType::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(constant.real));
  if (compute == DType::f64) return std::bit_cast<std::uint64_t>(constant.real);
  return static_cast<std::uint64_t>(constant.integer);
}

/// Whether compilers make less of a computation when they know this constant: 0, 1, -1, a power's
/// exponent, what a remainder is of.
bool helps_compilers(const ScalarExpr& expr, int constant) {
  const double value = expr.steps[static_cast<std::size_t>(constant)].real;
  return (std::fabs(value) <= 1 && std::trunc(value) == value) ||
         std::any_of(expr.steps.begin(), expr.steps.end(), [&](const ScalarStep& step) {
           return (step.op == ScalarOp::pow || step.op == ScalarOp::remainder ||
                   step.op == ScalarOp::floor_divide) &&
                  step.args[1] == constant;
         });
}

template <class T>
std::string shortest(T value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string number(text, end);
  if (number.find_first_of(".e") == std::string::npos) number += ".0";
  return std::signbit(value) ? "(" + number + ")" : number;
}

}  // namespace

bool is_wrapped(DType compute) { return compute == DType::i64; }

std::string literal(DType compute, double real, std::int64_t integer) {
  if (compute == DType::i64) {
    if (integer == INT64_MIN) return "(-9223372036854775807ll - 1)";
    return integer < 0 ? "(" + std::to_string(integer) + "ll)" : std::to_string(integer) + "ll";
  }
  if (compute == DType::u64) return std::to_string(static_cast<std::uint64_t>(integer)) + "ull";
  if (compute == DType::f64) {
    if (std::isfinite(real)) return shortest(real);
    return "__longlong_as_double(" + hexadecimal(std::bit_cast<std::uint64_t>(real)) + "ull)";
  }
  const auto single = static_cast<float>(real);
  if (!std::isfinite(single)) {
    return "__uint_as_float(" + hexadecimal(std::bit_cast<std::uint32_t>(single)) + "u)";
  }
  std::string text = shortest(single);
  text.insert(text.back() == ')' ? text.size() - 1 : text.size(), "f");
  return text;
}

std::string write_expression(Writer& writer, const ScalarExpr& expr, DType compute,
                             const ElementText& element, const std::string& prefix) {
  std::vector<std::string> values;
  std::size_t written = 0;
  const std::string type = element_type(compute);
  for (const ScalarStep& step : expr.steps) {
    const auto arg = [&](int i) {
      return step.args[i] < 0 ? std::string() : values[static_cast<std::size_t>(step.args[i])];
    };
    std::string value;
    switch (step.op) {
      case ScalarOp::input:
        values.push_back(element.inputs[static_cast<std::size_t>(step.which)]);
        continue;
      case ScalarOp::constant:
        values.push_back(element.has_constants_as_arguments &&
                                 !helps_compilers(expr, static_cast<int>(values.size()))
                             ? writer.constant(compute, bits_of(compute, step))
                             : literal(compute, step.real, step.integer));
        continue;
      case ScalarOp::size:
        values.push_back(converted(writer.value_of(step.size), DType::i64, compute));
        continue;
      case ScalarOp::index:
        values.push_back(type + "(" +
                         (static_cast<std::size_t>(step.which) == element.moved_axis
                              ? element.moved_index
                              : axis_name(static_cast<std::size_t>(step.which))) +
                         ")");
        continue;
      case ScalarOp::uniform:
      case ScalarOp::normal: {
        const std::string n =
            std::to_string(writer.stream({step.of_run ? 0 : step.seed, step.stream, step.of_run}));
        value = type + "(" + std::string(info(step.op).name) + "(seed" + n + ", stream" + n + ", " +
                (step.args[0] < 0 ? element.place : "u64(" + arg(0) + ")") + "))";
        break;
      }
      default:
        value = operation(step.op, compute, arg(0), arg(1), arg(2));
    }
    const std::string name = prefix + std::to_string(written++);
    writer.line("const " + type + " " + name + " = " + value + ";");
    values.push_back(name);
  }
  return values.back();
}

std::string converted(const std::string& value, DType from, DType to) {
  return from == to ? value : "as<" + element_type(to) + ">(" + value + ")";
}

std::string combined(Combine combine, DType compute, const std::string& a, const std::string& b) {
  const auto call = [&](const char* function) { return function + ("(" + a + ", " + b + ")"); };
  switch (info(info(combine).of_taken).operation) {
    case ScalarOp::add:
      return !is_wrapped(compute) ? a + " + " + b : call("plus");
    case ScalarOp::mul:
      return !is_wrapped(compute) ? a + " * " + b : call("times");
    case ScalarOp::max:
      return call("greatest");
    case ScalarOp::min:
      return call("least");
    default:
      throw std::logic_error("codegen: unknown combination");
  }
}

std::string combining(Combine combine, DType compute) {
  const std::string type = element_type(compute);
  return "[](" + type + " a, " + type + " b) { return " + combined(combine, compute, "a", "b") +
         "; }";
}

std::string identity(Combine combine, DType compute) {
  switch (info(combine).nothing) {
    case CombineInfo::zero:
      return literal(compute, 0, 0);
    case CombineInfo::one:
      return literal(compute, 1, 1);
    case CombineInfo::lowest:
      return literal(compute, -INFINITY, compute == DType::u64 ? 0 : INT64_MIN);
    case CombineInfo::highest:
      return literal(compute, INFINITY, compute == DType::u64 ? -1 : INT64_MAX);
  }
  throw std::logic_error("codegen: unknown combination");
}

std::string taken(Combine combine, DType compute, const std::string& value) {
  if (!info(combine).asks) return value;
  return as_number(compute, value + " != " + literal(compute, 0, 0));
}

}  // namespace ein::codegen
