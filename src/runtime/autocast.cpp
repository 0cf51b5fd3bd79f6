#include "runtime/autocast.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <ein/autocast.hpp>
#include <ein/error.hpp>

namespace ein {
namespace {

thread_local std::optional<DType> contraction_type;

std::optional<DType> require_type(DType dtype) {
  if (dtype == DType::f32) return std::nullopt;
  if (dtype == DType::bf16 || dtype == DType::f16) return dtype;
  throw Error(ErrorKind::dtype,
              "Autocast: wants bf16, f16 or f32, got " + std::string(name(dtype)));
}

}  // namespace

Autocast::Autocast(DType dtype) : before_(std::exchange(contraction_type, require_type(dtype))) {}
Autocast::~Autocast() { contraction_type = before_; }
std::optional<DType> autocast_dtype() { return contraction_type; }

namespace engine {
namespace {

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

/// Whether the operation adds or multiplies many elements, outside of a contraction.
bool accumulates(Operation op, Reduction reduction) {
  if (op != Operation::reduce) return info(op).accumulates;
  return reduction != Reduction::max && reduction != Reduction::min &&
         reduction != Reduction::any && reduction != Reduction::all &&
         reduction != Reduction::nanmax && reduction != Reduction::nanmin;
}

}  // namespace

AutocastOperands::AutocastOperands(Operation op, Reduction reduction, Operands operands)
    : operands_(operands) {
  if (!contraction_type) return;
  if (op == Operation::einsum && operands.size() >= 2) convert(operands, *contraction_type);
  if (accumulates(op, reduction)) convert(operands, DType::f32);
}

void AutocastOperands::convert(Operands operands, DType to) {
  converted_.reserve(operands.size());
  for (const Tensor* operand : operands) {
    const bool takes_part = is_half(operand->dtype()) || operand->dtype() == DType::f32;
    converted_.push_back(takes_part ? operand->to(to) : *operand);
  }
  for (const Tensor& operand : converted_) addresses_.push_back(&operand);
  operands_ = addresses_;
}

DType autocast_sum_type(DType dtype) {
  return contraction_type && is_half(dtype) ? DType::f32 : dtype;
}

}  // namespace engine
}  // namespace ein
