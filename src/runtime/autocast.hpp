// What a scope of ein::Autocast does to a call.
#pragma once

#include <vector>

#include <ein/pattern.hpp>
#include <ein/reduction.hpp>
#include "runtime/plan.hpp"

namespace ein::engine {

/// The operands of a call, converted as the scope wants.
class AutocastOperands {
 public:
  AutocastOperands(Operation op, Reduction reduction, Operands operands);
  Operands operands() const { return operands_; }

 private:
  void convert(Operands operands, DType to);

  Operands operands_;
  std::vector<Tensor> converted_;
  std::vector<const Tensor*> addresses_;
};

/// The dtype that a sum of elements of `dtype` has under the scope: f32 for 16 bits.
DType autocast_sum_type(DType dtype);

}  // namespace ein::engine
