// The tape: what tensors remember of the calls that made them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <ein/tensor.hpp>
#include "runtime/plan.hpp"
#include "runtime/setting.hpp"

namespace ein {
namespace engine {
class Node;
}

namespace detail {

/// Shared by all copies of a tensor's handle.
struct GradState {
  /// Of a tensor on `on`; null while it is traced.
  GradState(const std::shared_ptr<Storage>& on, std::shared_ptr<engine::Node> made_by,
            std::size_t result)
      : node(std::move(made_by)), output(result), storage(on) {
    if (on) on->count_gradient(1);
  }
  ~GradState() {
    if (const auto on = storage.lock()) on->count_gradient(-1);
  }
  GradState(const GradState&) = delete;
  GradState& operator=(const GradState&) = delete;

  std::shared_ptr<engine::Node> node;  // the call that made it; null: a leaf
  std::size_t output = 0;              // which of the call's results it is
  bool retains = false;
  bool is_replaced = false;  // a parameter that a module has moved elsewhere since
  std::optional<Tensor> grad{};
  std::weak_ptr<Storage> storage;
};

}  // namespace detail

namespace engine {

using GradStates = std::vector<std::shared_ptr<detail::GradState>>;
using MaybeTensors = std::vector<std::optional<Tensor>>;

/// A remembered call.
class Node {
 public:
  /// `inputs`: the states of the operands, null where no gradient flows; `result_types` as the
  /// results are.
  Node(GradStates inputs, std::span<const Tensor> results);
  virtual ~Node();

  const GradStates& inputs() const { return inputs_; }
  /// What the results depend on: the inputs, and more where gradients would be lost.
  virtual GradStates depends_on() const { return inputs_; }
  /// Later calls have greater numbers.
  std::uint64_t number() const { return number_; }
  /// The cotangents of the wanted operands, some of which may be missing (zero), from those of the
  /// results. Those of complex tensors come and go as real ones.
  virtual MaybeTensors pull_back(const MaybeTensors& cotangents,
                                 const std::vector<bool>& wanted) const = 0;

 protected:
  /// The cotangents of all results, of their dtypes.
  std::vector<Tensor> with_zeros(const MaybeTensors& cotangents) const;

  struct Type {
    Shape shape;
    DType dtype;
    Device device;
    MeshPointer mesh{};  // null where it is whole
    Placement placement{};
    Tensor zeros() const;
  };
  const std::vector<Type>& result_types() const { return results_; }

 private:
  std::uint64_t number_;
  GradStates inputs_;
  std::vector<Type> results_;
  std::shared_ptr<Node> next_;  // to be let go of, in a chain
  std::atomic<bool> is_in_chain_{false};
};

/// The number that the next call will have, or a greater one.
std::uint64_t next_node_number();

/// A tensor as it was at a call, for the backward pass.
class Saved {
 public:
  explicit Saved(const Tensor& x);
  /// The tensor, operand number `operand` of `call`; an Error that names it if it was written to
  /// since.
  const Tensor& get(std::size_t operand, const std::string& call) const;

 private:
  Tensor tensor_;
  std::uint64_t version_;
};

/// While it lives, notes the memory that this thread's remembered calls read.
class Watch {
 public:
  struct Read {
    std::weak_ptr<Storage> storage;
    std::uint64_t version;  // when it was read first
    Shape shape;
  };

  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// In the order in which it was read first.
  const std::vector<Read>& reads() const { return reads_; }
  const std::vector<detail::ReadSetting>& settings() const { return settings_; }
  /// By all watches of this thread.
  static void note(Operands operands);
  static void note(const detail::ReadSetting& read);

 private:
  Watch* outer_;
  std::vector<Read> reads_;
  std::vector<detail::ReadSetting> settings_;
  std::unordered_map<const Storage*, std::size_t> place_;
};

/// The same tensor, to which no gradient flows. (Tensor::detach in a trace of a call also says so
/// to the call's derivative.)
Tensor without_history(const Tensor& x);

/// The leaf is no longer a parameter of its module, another tensor took its place.
void mark_replaced(const Tensor& parameter);
bool is_replaced(const Tensor& parameter);

/// Lets gradients flow from `results` to the operands of a call of `plan` where they can.
void remember_call(const Plan& plan, Operands operands, std::span<Tensor> results);
/// The same for results of any node.
void attach(const std::shared_ptr<Node>& node, std::span<const Tensor> results);
/// The same for one of them.
void attach(const std::shared_ptr<Node>& node, std::size_t place, const Tensor& result);

}  // namespace engine
}  // namespace ein
