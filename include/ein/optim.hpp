// Optimizers: from gradients to new parameters, with the formulas of PyTorch's torch.optim.
//
//     optim::AdamW optimizer(parameters, {.learning_rate = 1e-3, .weight_decay = 0.1});
//     loss.backward();
//     optimizer.step();
//     optimizer.zero_grad();
//
// A step is made of tensor operations only, so a function that ein::compile traces may take one.
// State is held in f32 (f64 for parameters in f64); parameters in 16 or 8 bits have a master copy
// in f32, which is updated and rounded. What is written to a parameter counts: where it is not the
// rounded master, the next step begins with it.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ein/mesh.hpp>
#include <ein/state_dict.hpp>
#include <ein/tensor.hpp>

namespace ein::detail {
class Setting;
}

namespace ein::optim {

/// Parameters with options of their own.
struct ParameterGroup {
  std::vector<Tensor> parameters;
  std::optional<double> weight_decay{};  ///< in place of the optimizer's
  double learning_rate_factor = 1;       ///< times the optimizer's learning rate
};

/// The parameters of an optimizer: a list, or groups.
class ParameterGroups {
 public:
  ParameterGroups(std::initializer_list<Tensor> parameters)
      : ParameterGroups(std::vector(parameters)) {}
  ParameterGroups(std::initializer_list<ParameterGroup> groups) : groups_(groups) {}
  ParameterGroups(std::vector<Tensor> parameters) : groups_{{std::move(parameters)}} {}
  ParameterGroups(std::vector<ParameterGroup> groups) : groups_(std::move(groups)) {}
  const std::vector<ParameterGroup>& groups() const { return groups_; }

 private:
  std::vector<ParameterGroup> groups_;
};

/// A tensor of state that each parameter has, of its shape.
struct StateTensor {
  std::string name;
  double initial = 0;  ///< of all elements
};

/// How one kind of optimizer updates a parameter. One of your own:
///
///     class SignRule : public optim::Rule {
///      public:
///       SignRule() : Rule("Sign", {}) {}
///       std::vector<Tensor> update(const Values& v) const override {
///         return {v.p - v.numbers[0] * where(v.g > 0, 1, -1)};
///       }
///     };
///     struct Sign : optim::Optimizer {
///       Sign(const optim::ParameterGroups& parameters, double learning_rate)
///           : Optimizer(parameters, learning_rate, 0, std::make_unique<SignRule>()) {}
///     };
class Rule {
 public:
  /// The optimizer's name, for messages.
  Rule(std::string optimizer, std::vector<StateTensor> state)
      : optimizer_(std::move(optimizer)), state_(std::move(state)) {}
  virtual ~Rule() = default;

  const std::string& optimizer() const { return optimizer_; }
  const std::vector<StateTensor>& state() const { return state_; }

  /// Numbers of this step for a group of parameters, from numbers in f64; `step` counts from 1.
  /// They are computed once for all of the group; here: the learning rate. Parameters in f32 see
  /// them rounded to f32, so a factor near 1 such as 1 - x loses digits of x at each step: give x.
  virtual std::vector<Tensor> numbers(const Tensor& learning_rate, const Tensor& step,
                                      double weight_decay) const;

  /// What an update reads. All have one dtype: f32, or f64 for parameters in f64.
  struct Values {
    const Tensor& p;                  ///< the parameter, or its master copy
    const Tensor& g;                  ///< its gradient
    std::span<const Tensor> state;    ///< in the order of state()
    std::span<const Tensor> numbers;  ///< without axes, in the order of numbers()
    double weight_decay;              ///< of the group
  };
  /// The new parameter, then its new state. Made of values alone: nothing is written.
  virtual std::vector<Tensor> update(const Values& values) const = 0;

 private:
  std::string optimizer_;
  std::vector<StateTensor> state_;
};

/// g + weight_decay · p: decay as a part of the gradient, that of weight_decay/2 · |p|².
Tensor decayed_gradient(const Rule::Values& values);

/// What all optimizers share. Steps are counted once for all parameters: one whose gradient first
/// comes later takes the numbers of that step (in PyTorch each parameter counts its own). Copies of
/// a parameter's handle are the same parameter.
class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(Optimizer&&) noexcept;

  /// Updates every parameter that has a gradient, and counts a step. Where `skip`, a bool without
  /// axes, is true, all keeps its value instead. Errors: kind dtype, shape for another `skip`; kind
  /// value where no parameter has a gradient, and where a module has moved one elsewhere (to(),
  /// place(), shard()) since the optimizer was made.
  void step(const Tensor* skip = nullptr);
  /// Drops the parameters' gradients and frees their memory.
  void zero_grad();

  /// From now on each process along a mesh axis keeps and computes its part of the state alone
  /// (ZeRO: Rajbhandari et al. 2020, stage 1): of each parameter the first axis that the mesh axis
  /// divides and that is whole is split; where there is none all stays whole. What a step makes of
  /// a parameter is gathered. Before the first step, or with state that is whole.
  void shard(const Mesh& mesh, std::string_view axis);
  /// Of an optimizer that is sharded, after a backward pass: leaves at each parameter the part of
  /// its gradient that the step needs. In a compiled step the sum of the processes' gradients is
  /// then a reduce_scatter, and no process has all of it (stage 2).
  void shard_gradients();

  /// Both are an Error of kind `value` in a function that ein::compile traces: what they do would
  /// happen once, not in each run.
  double learning_rate() const;
  /// From the next step on, a compiled one's next run included. An Error of kind `value` unless it
  /// is finite and not negative.
  void set_learning_rate(double learning_rate);

  /// The parameters in the order in which they were given.
  const std::vector<Tensor>& parameters() const { return parameters_; }

  /// The state, by the place of its parameter and its name ("0.exp_avg", "0.master"), with "step",
  /// how many were made, and "learning_rate" (f64). The tensors are those that later steps write
  /// to.
  StateDict state_dict() const;
  /// Copies the tensors of `state` into this optimizer's. An Error of kind `value` that names a key
  /// that is missing or unknown, and for a step or a learning rate that is negative or not finite;
  /// of kind `shape` where shapes differ, of kind `dtype` for complex numbers in place of real
  /// ones, of kind `placement` for what is placed otherwise; then nothing has changed.
  void load_state_dict(const StateDict& state);

 protected:
  /// Errors: kind value for no or repeated parameters and for those that were computed from others,
  /// for options outside their domain and for a rule whose states share a name, dtype for
  /// parameters that are not floating-point.
  Optimizer(const ParameterGroups& parameters, double learning_rate, double weight_decay,
            std::unique_ptr<const Rule> rule);

 private:
  struct Slot;
  struct Group;

  std::unique_ptr<const Rule> rule_;
  std::optional<Mesh> mesh_;  // that it is sharded over
  bool gradients_are_shards_ = false;
  std::vector<Tensor> parameters_;
  std::vector<Group> groups_;
  Tensor step_, learning_rate_;                // f64, without axes
  std::shared_ptr<detail::Setting> sharding_;  // counts shard()s
};

/// Stochastic gradient descent: p -= lr · g. With momentum μ (Polyak 1964; Sutskever et al. 2013),
/// v = μ·v + (1 - dampening)·g, where the first step takes v = g, and p -= lr · v, or lr · (g +
/// μ·v) after Nesterov.
struct SGDOptions {
  double learning_rate = 1e-3;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;    ///< an Error of kind `value` without momentum or with dampening
  double weight_decay = 0;  ///< adds weight_decay · p to g
};
class SGD : public Optimizer {
 public:
  explicit SGD(const ParameterGroups& parameters, const SGDOptions& options = {});
};

/// AdaGrad (Duchi, Hazan, Singer 2011): s += g²; p -= lr · g / (√s + eps).
struct AdaGradOptions {
  double learning_rate = 0.01;
  double learning_rate_decay = 0;  ///< step t, from 0, takes lr / (1 + t · decay)
  double initial_accumulator = 0;
  double eps = 1e-10;
  bool eps_inside_root = false;  ///< g / √(s + eps) instead
  double weight_decay = 0;       ///< adds weight_decay · p to g
};
class AdaGrad : public Optimizer {
 public:
  explicit AdaGrad(const ParameterGroups& parameters, const AdaGradOptions& options = {});
};

/// RMSProp (Tieleman, Hinton 2012): s = α·s + (1 - α)·g²; p -= lr · g / (√s + eps). Centered
/// (Graves 2013), s less the square of the average gradient stands under the root. With momentum μ:
/// b = μ·b + g / (√s + eps); p -= lr · b.
struct RMSPropOptions {
  double learning_rate = 0.01;
  double alpha = 0.99;
  double eps = 1e-8;
  double momentum = 0;
  bool centered = false;
  double weight_decay = 0;  ///< adds weight_decay · p to g
};
class RMSProp : public Optimizer {
 public:
  explicit RMSProp(const ParameterGroups& parameters, const RMSPropOptions& options = {});
};

/// Adam (Kingma, Ba 2015): m = β₁·m + (1 - β₁)·g; v = β₂·v + (1 - β₂)·g²; p -= lr · m̂ / (√v̂ +
/// eps), where step t takes m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ).
struct AdamOptions {
  double learning_rate = 1e-3;
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;  ///< Adam: adds weight_decay · p to g
  /// p -= lr · √(1 - β₂ᵗ) / (1 - β₁ᵗ) · m / (√v + eps), as Kingma and Ba write it in section 2 and
  /// CS336 has it: eps is then that much larger beside √v̂.
  bool eps_before_correction = false;
  /// AdamW: p -= lr · weight_decay · p stands after the update, as CS336 had it in 2025, and not
  /// before it, as PyTorch and CS336 of 2026 have it.
  bool decay_last = false;
};
class Adam : public Optimizer {
 public:
  explicit Adam(const ParameterGroups& parameters, const AdamOptions& options = {});
};

/// Adam with decoupled weight decay (Loshchilov, Hutter 2019): before the update, p -= lr ·
/// weight_decay · p.
class AdamW : public Optimizer {
 public:
  explicit AdamW(const ParameterGroups& parameters, const AdamOptions& options = {});
};

/// Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon), as torch.optim.Muon has
/// it: v = μ·v + (1 - μ)·g; u = μ·v + (1 - μ)·g after Nesterov, else v; p -= lr · weight_decay · p;
/// p -= lr · scale · O, where O is u made orthogonal, by `steps` steps of Newton and Schulz on u /
/// |u|: x
/// -> a·x + (b·G + c·G²)·x with G = x·xᵀ. Singular values of O are between 0.7 and 1.2 then.
struct MuonOptions {
  /// Of an update, by the shape of a matrix.
  enum class Scale : std::uint8_t {
    original,     ///< √max(1, outputs / inputs)
    rms_of_adamw  ///< 0.2 · √max(outputs, inputs): updates as large as AdamW's (Liu et al. 2025)
  };
  double learning_rate = 1e-3;
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;
  std::int64_t steps = 5;
  std::array<double, 3> coefficients{3.4445, -4.7750, 2.0315};  ///< a, b, c
  double eps = 1e-7;                                            ///< |u| counts as this at least
  Scale scale = Scale::original;
  bool outputs_first = false;  ///< weights are (out, in); nn::Linear's are (in, out)
};
/// Of matrices alone, those inside a model; embeddings, heads and vectors are for AdamW. An Error
/// of kind `rank` for a parameter that is no matrix.
class Muon : public Optimizer {
 public:
  explicit Muon(const ParameterGroups& parameters, const MuonOptions& options = {});
};

/// LAMB (You et al. 2020, algorithm 2 with φ(z) = z): u = m̂ / (√v̂ + eps) + weight_decay · p; p -=
/// lr · |p| / |u| · u, with norms of the whole tensor, and a ratio of 1 where one of them is 0.
struct LAMBOptions {
  double learning_rate = 1e-3;
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-6;
  double weight_decay = 0;
};
class LAMB : public Optimizer {
 public:
  explicit LAMB(const ParameterGroups& parameters, const LAMBOptions& options = {});
};

}  // namespace ein::optim
