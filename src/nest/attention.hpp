// Attention: what nests are together that compute softmax attention, or its gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nest/nest.hpp"

namespace ein {

/// What nests compute together that are softmax attention (Vaswani et al. 2017), or the gradients
/// of it:
///     out = P v,  P = softmax of scale q kᵀ along the keys that a query sees, key <= query + reach
///     dv = Pᵀ dout,  ds = gradient_scale P (dout vᵀ - delta),  dq = ds k,  dk = dsᵀ q
/// with delta the sum of dout · out for each query. Operands have strides along `axes`: those of
/// the batch, then query, key, depth (of q and k) and width (of v and out). Keys and values may
/// stand still along an axis of the batch, which dk and dv are summed over.
struct Attention {
  std::vector<LoopNest::NestAxis> axes;
  double scale = 1;           // above 0
  std::optional<Size> reach;  // at least 0; none: all keys are seen
  LoopNest::Operand q, k, v, out;
  /// f32: log2 of the sum of exp(scores) of each query, for the gradients.
  std::optional<LoopNest::Operand> log_sums;
  struct Gradients {
    double scale = 1;
    LoopNest::Operand dout, delta;  // delta is scratch memory, f32
    std::optional<LoopNest::Operand> dq, dk, dv;
    EIN_FIELDS(Gradients, scale, dout, delta, dq, dk, dv)
  };
  std::optional<Gradients> gradients;  // the nests compute these alone
  EIN_FIELDS(Attention, axes, scale, reach, q, k, v, out, log_sums, gradients)
};

/// What it reads, whatever its nests read: its gradients compute the scores again.
inline std::vector<const LoopNest::Operand*> read_by(const Attention& attention) {
  std::vector<const LoopNest::Operand*> operands{&attention.q, &attention.k, &attention.v};
  if (!attention.gradients) return operands;
  operands.insert(operands.end(),
                  {&attention.out, &attention.gradients->dout, &attention.gradients->delta});
  if (attention.log_sums) operands.push_back(&*attention.log_sums);
  return operands;
}

}  // namespace ein
