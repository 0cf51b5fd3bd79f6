// The tape: what tensors remember of the calls that made them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <ein/tensor.hpp>
#include "runtime/plan.hpp"

namespace ein {
namespace engine {
class Node;
}

namespace detail {

/// Shared by all copies of a tensor's handle.
struct GradState {
  std::shared_ptr<engine::Node> node;  // the call that made it; null: a leaf
  std::size_t output = 0;              // which of the call's results it is
  bool retains = false;
  std::optional<Tensor> grad{};
};

}  // namespace detail

namespace engine {

using GradStates = std::vector<std::shared_ptr<detail::GradState>>;
using MaybeTensors = std::vector<std::optional<Tensor>>;

/// A remembered call.
class Node {
 public:
  /// `inputs`: the states of the operands, null where no gradient flows; `result_types` as the results are.
  Node(GradStates inputs, std::span<const Tensor> results);
  virtual ~Node();

  const GradStates& inputs() const { return inputs_; }
  /// Later calls have greater numbers.
  std::uint64_t number() const { return number_; }
  /// The cotangents of the wanted operands, some of which may be missing (zero), from those of the results.
  MaybeTensors pull_back(const MaybeTensors& cotangents, const std::vector<bool>& wanted) const;

 protected:
  virtual MaybeTensors pull_back(std::span<const Tensor> cotangents, const std::vector<bool>& wanted) const = 0;

 private:
  struct Type {
    Shape shape;
    DType dtype;
  };
  std::uint64_t number_;
  GradStates inputs_;
  std::vector<Type> results_;
};

/// Lets gradients flow from `results` to the operands of a call of `plan` where they can.
void remember_call(const Plan& plan, Operands operands, std::span<Tensor> results);
/// The same for results of any node.
void attach(const std::shared_ptr<Node>& node, std::span<const Tensor> results);

}  // namespace engine
}  // namespace ein
