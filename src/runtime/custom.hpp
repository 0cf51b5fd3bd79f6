// While the function of a custom call runs: which tensors depend on its arguments.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/tape.hpp"

namespace ein::engine {

/// What gradients of the arguments go to. What the function made holds no more of what came before
/// than that: until gradients are to be differentiated again, which then may depend on it.
struct CustomArguments {
  std::vector<std::weak_ptr<detail::GradState>> states;
  GradStates held{};
};

/// Calls of the function are not remembered, so nothing flows through what it makes of its
/// arguments. Such tensors have a history all the same, one that is an Error to walk back: the vjp
/// may use what the function kept, and gradients of that gradient would lack its part.
class CustomScope {
 public:
  /// Of a call with these arguments.
  explicit CustomScope(std::span<const Tensor> arguments);
  ~CustomScope();
  CustomScope(const CustomScope&) = delete;
  CustomScope& operator=(const CustomScope&) = delete;

  /// The arguments as the function gets them.
  std::vector<Tensor> stand_ins(std::span<const Tensor> arguments) const;
  const std::shared_ptr<CustomArguments>& arguments() const { return arguments_; }

  /// A call that is not remembered, with operands through which gradients flow: where a custom
  /// function makes it, the results get the history of its arguments. An Error of kind `value`
  /// where an operand has a history of its own.
  static void note(const std::string& call, Operands operands, std::span<const Tensor> results);

 private:
  void mark(std::span<const Tensor> results) const;
  bool is_from_outside(const Tensor& x) const;

  CustomScope* outer_;
  std::uint64_t first_;  // number of the first call inside
  std::shared_ptr<CustomArguments> arguments_;
};

}  // namespace ein::engine
