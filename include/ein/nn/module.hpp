// Module: what a model is made of, parameters and other modules by name.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <ein/mesh.hpp>
#include <ein/state_dict.hpp>
#include <ein/tensor.hpp>

namespace ein {
struct Account;
}
namespace ein::detail {
class Setting;
}

namespace ein::nn {

struct LoadStateOptions {
  bool strict = true;  ///< the names are those of the module
  /// What stands before each name of the module in the state, as "model."; what begins otherwise
  /// is another's, and counts as if it were not there.
  std::string prefix{};
};

/// Names that Module::load_state_dict left alone, as the state has them; none where it is strict.
struct LoadedState {
  std::vector<std::string> missing;     ///< parameters that the state has no tensor for
  std::vector<std::string> unexpected;  ///< tensors that the module has no parameter for
};

/// Owns parameters (tensors that require gradients) and other modules, both as members that the
/// derived class's constructor registers by name. Names are joined by dots: "layers.0.weight". It
/// stays where it was built.
class Module {
 public:
  Module();
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Every parameter of this module and those below it, in the order of registration; one that
  /// several modules share comes once, under its first name.
  std::vector<std::pair<std::string, Tensor>> named_parameters() const;
  std::vector<Tensor> parameters() const;
  /// The number of elements of all parameters.
  std::int64_t parameter_count() const;
  /// Lines `parameters`, by module, and `bytes` (ein/account.hpp).
  Account account() const;

  /// The parameters by name, sharing their storage; no gradient flows to these tensors.
  /// Names begin with `prefix`, as "model.".
  StateDict state_dict(const std::string& prefix = "") const;
  /// Copies each tensor into the parameter of its name, converted to the parameter's dtype. An
  /// Error of kind `value` that lists every name that is missing, unexpected or of another shape,
  /// or complex where the parameter is real; then nothing was copied. Where `strict` is false,
  /// names that are missing or unexpected are no mistake but what is returned; those parameters
  /// stay as they are.
  LoadedState load_state_dict(const StateDict& state, LoadStateOptions options = {}) const;

  /// Moves every parameter, here and below, to a device; one that moves loses its gradient.
  /// Optimizers are made afterwards: the step of one that was made before is an Error.
  void to(Device device);

  /// Places parameters, here and below, on a mesh, as `pattern` says of each by its name and shape:
  /// "i o@model", or nothing of one that stays whole. Those that are placed lose their gradients;
  /// optimizers are made afterwards.
  void place(const Mesh& mesh,
             const std::function<std::string(const std::string& name, const Tensor&)>& pattern);

  /// Each process along a mesh axis keeps its part of every parameter, here and below, alone (ZeRO:
  /// Rajbhandari et al. 2020, stage 3): see shard_pattern(). Layers gather a parameter where they
  /// use it; a compiled step does so again in its backward pass, and keeps nothing between. As
  /// place() otherwise.
  void shard(const Mesh& mesh, std::string_view axis);

  /// Whether layers such as dropout act as in training, here and below; at first they do. A
  /// compiled function that asks has a program for each answer.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;

  /// Drops every parameter's gradient and frees its memory.
  void zero_grad() const;

 protected:
  // Both keep the member's address. Errors of kind `value`: a name that is empty, has a dot or is
  // taken; a module inside itself.

  /// Makes the tensor require its gradient.
  void add_parameter(std::string name, Tensor& parameter);
  void add_module(std::string name, Module& child);

  /// Registers members of a class, in this order: see EIN_MODULES.
  class Registered {
   public:
    /// `names` are those of the members, between commas.
    template <class... Members>
    Registered(Module& module, std::string_view names, Members&... members) {
      (add(module, first_of(names), members), ...);
    }

   private:
    /// The first name of a list, which is taken off it.
    static std::string first_of(std::string_view& names);
    template <class Member>
    static void add(Module& module, std::string name, Member& member) {
      static_assert(std::is_same_v<Member, Tensor> || std::derived_from<Member, Module>,
                    "EIN_MODULES: members are modules and tensors; what may be absent is "
                    "registered in the constructor, by add_module or add_parameter");
      if constexpr (std::is_same_v<Member, Tensor>)
        module.add_parameter(std::move(name), member);
      else
        module.add_module(std::move(name), member);
    }
  };

  /// The parameter as forward() reads it: not sharded.
  Tensor used(const Tensor& parameter) const {
    return sharded_over_.empty() ? parameter : gather_over(parameter, sharded_over_);
  }

 private:
  void require_new_name(const std::string& name) const;
  bool contains(const Module& other) const;
  /// Replaces each parameter, here and below, by move(name, parameter); modules that shared one
  /// still do.
  using Moved = std::map<const void*, std::pair<Tensor, Tensor>>;  // from, to
  using Move = std::function<Tensor(const std::string& name, const Tensor& parameter)>;
  void mark_sharded(std::string_view axis);
  void move_parameters(const std::string& prefix, const Move& move, Moved& moved);

  std::vector<std::pair<std::string, Tensor*>> parameters_;
  std::vector<std::pair<std::string, Module*>> children_;
  std::shared_ptr<detail::Setting> training_;
  std::string sharded_over_{};  // a mesh axis
};

/// In a class derived from Module, behind its members: registers those that are named, modules and
/// parameters, by their names, when the object is built.
///
///     struct SwiGLU : ein::nn::Layer {
///       SwiGLU(std::int64_t dim, std::int64_t inner)
///           : w1(dim, inner, false), w2(inner, dim, false), w3(dim, inner, false) {}
///       Tensor forward(const Tensor& x) const override { return w2(silu(w1(x)) * w3(x)); }
///
///       ein::nn::Linear w1, w2, w3;
///       EIN_MODULES(w1, w2, w3);
///     };
///
/// Members that are declared behind it are not built yet: they do not belong in it.
#define EIN_MODULES(...) \
  ::ein::nn::Module::Registered ein_modules_ { *this, #__VA_ARGS__, __VA_ARGS__ }

/// A module that is a function of one tensor.
class Layer : public Module {
 public:
  virtual Tensor forward(const Tensor& x) const = 0;
  Tensor operator()(const Tensor& x) const { return forward(x); }
};

/// Modules of one type, named "0", "1", ...
template <std::derived_from<Module> M>
class ModuleList : public Module {
 public:
  template <class... Arguments>
  M& emplace_back(Arguments&&... arguments) {
    M& module = modules_.emplace_back(std::forward<Arguments>(arguments)...);
    add_module(std::to_string(modules_.size() - 1), module);
    return module;
  }

  std::size_t size() const { return modules_.size(); }
  /// Precondition: i < size().
  M& operator[](std::size_t i) { return modules_[i]; }
  const M& operator[](std::size_t i) const { return modules_[i]; }
  auto begin() { return modules_.begin(); }
  auto end() { return modules_.end(); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }

 private:
  std::deque<M> modules_;  // never moves what it holds
};

/// Layers one after the other, named "0", "1", ...
class Sequential : public Layer {
 public:
  /// `model.add<nn::Linear>(64, 10)`.
  template <std::derived_from<Layer> L, class... Arguments>
  L& add(Arguments&&... arguments) {
    auto layer = std::make_unique<L>(std::forward<Arguments>(arguments)...);
    L& added = *layer;
    add_module(std::to_string(layers_.size()), added);
    layers_.push_back(std::move(layer));
    return added;
  }
  /// `model.add<nn::Function>(ein::relu)`: of the functions of this name that of a Tensor.
  template <std::derived_from<Layer> L>
  L& add(Tensor (*function)(const Tensor&)) {
    return add<L, Tensor (*&)(const Tensor&)>(function);
  }
  std::size_t size() const { return layers_.size(); }

  Tensor forward(const Tensor& x) const override;

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace ein::nn
