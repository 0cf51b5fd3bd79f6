// The part of a step's bill that its loop nests say.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ein/step_bill.hpp>
#include "nest/nest.hpp"

namespace ein {

/// Costs, activations and gradients.
StepBill step_bill(const Program& program);

/// What a buffer is to a training step.
struct BufferUse {
  bool is_activation = false;        // computed by the forward pass, read by the backward pass
  bool is_gradient = false;          // left by the backward pass to the update, or returned
  const LoopNest* writer = nullptr;  // the first nest that writes it; null of an input
};

/// The buffers of a program, which must outlive this, as values of the step.
class StepValues {
 public:
  explicit StepValues(const Program& program);
  const BufferUse& use(std::size_t buffer) const { return uses_[buffer]; }
  /// What a nest wrote there. Axes that were joined to one are named apart where other nests say
  /// their sizes, and else in parentheses.
  KeptValue value(std::size_t buffer) const;

 private:
  void find_uses();
  void add_axis(const LoopNest::NestAxis& axis, KeptValue& to) const;

  const Program& program_;
  std::vector<BufferUse> uses_;
  std::map<std::string, Size> sizes_;  // of axes by name; 0 of a name with several
};

}  // namespace ein
