// Scalar expressions as CUDA C++.
#pragma once

#include <string>
#include <vector>

#include "codegen/writer.hpp"

namespace ein::codegen {

/// What an expression is evaluated on.
struct ElementText {
  std::vector<std::string> inputs;  // the value of each, in the type of the computation
  std::string place = {};           // in the result; random numbers depend on it
  // An axis whose index is not as Writer names it.
  std::size_t moved_axis = static_cast<std::size_t>(-1);
  std::string moved_index = {};
  /// Whether constants become arguments of the kernel (Writer::constant).
  bool has_constants_as_arguments = false;
};

/// Writes the steps of `expr` in type `compute` (f64, f32, i64 or u64) and returns the name of its
/// value, or a literal. Names begin with `prefix`.
std::string write_expression(Writer& writer, const ScalarExpr& expr, DType compute,
                             const ElementText& element, const std::string& prefix = "v");

/// Whether numbers of type `compute` are added and multiplied by functions that wrap: those with a
/// sign overflow in C++.
bool is_wrapped(DType compute);
/// A number as a literal of type `compute`.
std::string literal(DType compute, double real, std::int64_t integer);

/// `value`, of type `from`, as an element of dtype `to`.
std::string converted(const std::string& value, DType from, DType to);

/// How two values of type `compute` are combined, as an expression.
std::string combined(Combine combine, DType compute, const std::string& a, const std::string& b);
/// The same as a function.
std::string combining(Combine combine, DType compute);
/// What combining begins with, as a literal.
std::string identity(Combine combine, DType compute);
/// Whether the order of combining matters, as each step rounds.
inline bool rounds(Combine combine, DType compute) {
  return is_floating(compute) && !info(combine).selects;
}
/// An element as the combination takes it: any and all ask whether it differs from zero.
std::string taken(Combine combine, DType compute, const std::string& value);

}  // namespace ein::codegen
