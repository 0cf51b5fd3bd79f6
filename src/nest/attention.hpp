// Attention: what nests are together that compute softmax attention, or its gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nest/nest.hpp"

namespace ein {

/// What nests compute together that are softmax attention (Vaswani et al. 2017), or the gradients
/// of it:
///     out = P v,  P = softmax of the scores along the keys that a query sees,
///     query - back <= key <= query + reach,  scores = function(q kᵀ), or scale q kᵀ without one
///     dv = Pᵀ dout,  ds = gradient_scale slope(q kᵀ) P (dout vᵀ - delta),  dq = ds k,  dk = dsᵀ q
/// with delta the sum of dout · out for each query. Operands have strides along `axes`: those of
/// the batch, then query, key, depth (of q and k) and width (of v and out). Keys and values may
/// stand still along an axis of the batch, which dk and dv are summed over.
struct Attention {
  std::vector<LoopNest::NestAxis> axes;
  double scale = 1;                     // above 0
  std::optional<Size> reach{}, back{};  // at least 0; none: that side is open
  /// Of input 0, which is q · k, inputs 1 + i, which are operands[i], the index 0 of the query and
  /// the index 1 of the key. The operands move along the batch, the queries and the keys.
  ScalarExpr function{};
  std::vector<LoopNest::Operand> operands{};
  LoopNest::Operand q, k, v, out;
  bool has_function() const { return !function.steps.empty(); }
  /// f32: log2 of the sum of exp(scores) of each query, for the gradients.
  std::optional<LoopNest::Operand> log_sums;
  struct Gradients {
    double scale = 1;
    ScalarExpr slope{};             // as `function`; none: 1
    LoopNest::Operand dout, delta;  // delta is scratch memory, f32
    std::optional<LoopNest::Operand> dq, dk, dv;
    EIN_FIELDS(Gradients, scale, slope, dout, delta, dq, dk, dv)
  };
  std::optional<Gradients> gradients;  // the nests compute these alone
  EIN_FIELDS(Attention, axes, scale, reach, back, function, operands, q, k, v, out, log_sums,
             gradients)
};

/// What it reads, whatever its nests read: its gradients compute the scores again.
inline std::vector<const LoopNest::Operand*> read_by(const Attention& attention) {
  std::vector<const LoopNest::Operand*> operands{&attention.q, &attention.k, &attention.v};
  for (const LoopNest::Operand& operand : attention.operands) operands.push_back(&operand);
  if (!attention.gradients) return operands;
  operands.insert(operands.end(),
                  {&attention.out, &attention.gradients->dout, &attention.gradients->delta});
  if (attention.log_sums) operands.push_back(&*attention.log_sums);
  return operands;
}

}  // namespace ein
