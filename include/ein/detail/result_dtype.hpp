// The dtype of a call's result: what it is by itself, and how a call says another.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>

#include <ein/axis.hpp>
#include <ein/dtype.hpp>
#include <ein/grammar/check.hpp>
#include <ein/reduction.hpp>

namespace ein {

/// The dtype of a result, as the last argument of a call; see `as`.
struct ResultDType {
  DType dtype = DType::f32;
};
/// The same in a type, so that typed results have it.
template <DType Type>
struct StaticResultDType {
  static constexpr DType result_dtype = Type;
  constexpr operator ResultDType() const { return {Type}; }
};

/// `einsum(x, y, "i k, k j -> i j", ein::as(ein::DType::i32))`: the result has this dtype. Floats
/// are summed in the wider of both dtypes and at least in f32, integers in 64 bits; the sum is
/// rounded, or for integers wrapped, once.
constexpr ResultDType as(DType dtype) { return {dtype}; }
/// `ein::as<ein::DType::i32>()`: the same, and a typed result has the dtype in its type.
template <DType Type>
constexpr StaticResultDType<Type> as() {
  return {};
}

template <class T>
concept ResultDTypeArgument = std::convertible_to<const T&, ResultDType>;
/// What may follow the pattern of a call: sizes of axes, and one dtype of the result.
template <class T>
concept CallArgument = AxisArgument<T> || ResultDTypeArgument<T>;

/// The dtype of sums and products of many elements: i64 for bool and integers, whose own dtype they
/// would soon leave; u64 for u64, whose elements i64 lacks.
constexpr DType sum_dtype(DType dtype) {
  return is_integral(dtype) && dtype != DType::u64 ? DType::i64 : dtype;
}

/// The dtype of a reduction's result. Variances and deviations of complex numbers are real.
constexpr DType result_dtype(Reduction reduction, DType operand) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::prod:
      return sum_dtype(operand);
    case Reduction::var:
    case Reduction::std:
    case Reduction::sample_var:
    case Reduction::sample_std:
      return real_dtype(operand);
    default:
      return operand;
  }
}

/// The dtype of the result of an operation whose result holds elements of its operands, or sums or
/// products of them.
constexpr DType result_dtype(Operation op, const grammar::Pattern& pattern, Reduction reduction,
                             DType operand) {
  switch (info(op).result) {
    case OperationInfo::of_operand:
      return operand;
    case OperationInfo::sums:
      return sum_dtype(operand);
    case OperationInfo::sums_if_reduced:
      return pattern.drops_an_axis() ? sum_dtype(operand) : operand;
    case OperationInfo::of_reduction:
      return result_dtype(reduction, operand);
  }
  return operand;
}

namespace detail {

/// The arguments of a call that follow its pattern.
template <CallArgument... S>
struct CallArguments {
  static constexpr std::size_t dtype_count = (std::size_t{ResultDTypeArgument<S>} + ... + 0);
  static_assert(dtype_count <= 1, "a result has one dtype: ein::as is given twice");

  explicit CallArguments(const S&... arguments) { (take(arguments), ...); }

  std::array<AxisSize, sizeof...(S) - dtype_count> sizes{};
  std::optional<DType> dtype{};

 private:
  template <class T>
  void take(const T& argument) {
    if constexpr (ResultDTypeArgument<T>)
      dtype = ResultDType(argument).dtype;
    else
      sizes[count_++] = argument;
  }
  std::size_t count_ = 0;
};

}  // namespace detail
}  // namespace ein
