#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/optim.hpp>
#include "graph/domain.hpp"
#include "runtime/map.hpp"
#include "runtime/setting.hpp"
#include "runtime/tape.hpp"
#include "runtime/trace.hpp"

namespace ein::optim {

/// One parameter: what the rule updates (it, or its master copy) and the state beside it.
struct Optimizer::Slot {
  Tensor parameter;
  Tensor updated;
  std::vector<Tensor> state;
  std::string whole{}, shard{};  // patterns: how the parameter lies, and how its state does; empty
                                 // where they lie alike

  bool is_sharded() const { return !shard.empty(); }
  /// What lies as the parameter does, as the state lies. Without gradients.
  Tensor sharded(const Tensor& x, const std::optional<Mesh>& mesh) const {
    if (!is_sharded()) return x;
    if (!parameter.is_placed()) return place(x, *mesh, runtime(shard));
    const std::string way = whole + " -> " + shard;
    return reshard(x, runtime(way));
  }
  Tensor gathered(const Tensor& x) const {
    if (!is_sharded()) return x;
    const std::string way = shard + " -> " + whole;
    return reshard(x, runtime(way));
  }
  bool has_master() const { return !updated.same_storage(parameter); }
  /// What the rule updates: the parameter's part of this process, or the master copy. Where that,
  /// rounded, is not what the parameter holds, somebody wrote to the parameter since: its value
  /// counts there. So the master's other digits stay, whoever wrote whatever else.
  Tensor current(const std::optional<Mesh>& mesh) const {
    const Tensor p = sharded(parameter, mesh);
    if (!has_master()) return p;
    const Tensor rounded = updated.to(p.dtype());
    const Tensor* const operands[] = {&updated, &rounded, &p};
    const Ex is_untouched = Ex::apply(ScalarOp::eq, Ex::input(1), Ex::input(2));
    return engine::map("step", where(is_untouched, Ex::input(0), Ex::input(2)), operands,
                       updated.dtype(), updated.dtype());
  }
};

struct Optimizer::Group {
  std::vector<Slot> slots;
  double weight_decay;
  double learning_rate_factor;
};

namespace {

/// Whether two tensors are one parameter; tensors without elements never are.
bool is_same(const Tensor& a, const Tensor& b) {
  return &a.impl() == &b.impl() || (a.numel() > 0 && a.same_storage(b) && a.offset() == b.offset());
}

Device device_of(const ParameterGroups& parameters) {
  for (const ParameterGroup& group : parameters.groups()) {
    if (!group.parameters.empty()) return group.parameters.front().device();
  }
  return cpu;
}

DType state_dtype(DType parameter) { return parameter == DType::f64 ? DType::f64 : DType::f32; }

void write(const Tensor& to, const Tensor& value, const Tensor* skip) {
  to.copy_from(skip ? where(*skip, to, value) : value);
}

std::string text_of(const Tensor& x) {
  return std::string(name(x.dtype())) + " " + x.shape().to_string();
}

void require_names(const Rule& rule) {
  for (std::size_t i = 0; i < rule.state().size(); ++i) {
    const std::string& name = rule.state()[i].name;
    bool is_taken = name == "master";
    for (std::size_t j = 0; j < i; ++j) is_taken |= rule.state()[j].name == name;
    if (is_taken)
      throw Error(ErrorKind::value,
                  rule.optimizer() + ": the name of the state \"" + name + "\" is taken");
  }
}

std::string parameter_text(const Rule& rule, std::size_t number, const Tensor& p) {
  return rule.optimizer() + ": parameter " + std::to_string(number) + " of shape " +
         p.shape().to_string();
}

/// A step of no gradient would train nothing, one of parameters that are elsewhere now not these.
void require_gradients(const Rule& rule, const std::vector<Tensor>& parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!engine::is_replaced(parameters[i])) continue;
    throw Error(ErrorKind::value, parameter_text(rule, i, parameters[i]) +
                                      " was moved by its module's to(), place() or shard() since "
                                      "the optimizer was made\n"
                                      "  help: make the optimizer after moving the module");
  }
  if (std::any_of(parameters.begin(), parameters.end(),
                  [](const Tensor& p) { return p.has_grad(); }))
    return;
  throw Error(ErrorKind::value,
              rule.optimizer() +
                  ": step: none of its parameters has a gradient\n"
                  "  help: call backward() before it; gradients of a backward() "
                  "inside of a function that ein::compile traces end with the trace, "
                  "so take the step inside, too");
}

/// What a rule made of a parameter and its state: as many tensors, of the same shapes and dtype.
/// One that is a view of what is to be written is copied.
std::vector<Tensor> updated_values(const Rule& rule, const Rule::Values& now) {
  std::vector<Tensor> values = rule.update(now);
  if (values.size() != 1 + now.state.size()) {
    throw Error(ErrorKind::value, rule.optimizer() + ": its rule returned " +
                                      std::to_string(values.size()) +
                                      " tensors; the parameter and its states are " +
                                      std::to_string(1 + now.state.size()));
  }
  const auto old_value = [&](std::size_t i) { return i == 0 ? now.p : now.state[i - 1]; };
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Tensor old = old_value(i);
    if (!(values[i].shape() == old.shape()) || values[i].dtype() != old.dtype()) {
      throw Error(values[i].shape() == old.shape() ? ErrorKind::dtype : ErrorKind::shape,
                  rule.optimizer() + ": its rule returned " + text_of(values[i]) + " for the " +
                      (i == 0 ? "parameter" : "state \"" + rule.state()[i - 1].name + "\"") +
                      ", which is " + text_of(old));
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < values.size(); ++j) {
      if (values[i].impl().is_traced() || !values[i].same_storage(old_value(j))) continue;
      values[i] = values[i].clone();
      break;
    }
  }
  return values;
}

}  // namespace

Tensor decayed_gradient(const Rule::Values& values) {
  return values.weight_decay == 0 ? values.g : values.g + values.weight_decay * values.p;
}

std::vector<Tensor> Rule::numbers(const Tensor& learning_rate, const Tensor&, double) const {
  return {learning_rate};
}

Optimizer::Optimizer(const ParameterGroups& parameters, double learning_rate, double weight_decay,
                     std::unique_ptr<const Rule> rule)
    : rule_(std::move(rule)),
      step_(zeros({}, DType::f64, device_of(parameters))),
      learning_rate_(full({}, learning_rate, DType::f64, device_of(parameters))),
      sharding_(std::make_shared<detail::Setting>(0)) {
  const std::string& name = rule_->optimizer();
  require_in(not_negative, name, "learning_rate", learning_rate);
  require_in(not_negative, name, "weight_decay", weight_decay);
  require_names(*rule_);
  if (step_.impl().is_traced()) {
    throw Error(ErrorKind::value, rule_->optimizer() +
                                      ": its state outlives a step; make it outside of the "
                                      "function that ein::compile traces");
  }
  for (const ParameterGroup& given : parameters.groups()) {
    Group group{{}, given.weight_decay.value_or(weight_decay), given.learning_rate_factor};
    require_in(not_negative, name, "weight_decay", group.weight_decay);
    require_in(not_negative, name, "learning_rate_factor", group.learning_rate_factor);
    for (const Tensor& p : given.parameters) {
      if (!is_floating(p.dtype())) {
        throw Error(ErrorKind::dtype, parameter_text(*rule_, parameters_.size(), p) + " is " +
                                          std::string(ein::name(p.dtype())) +
                                          ", no floating-point dtype");
      }
      if (p.impl().is_traced()) {
        throw Error(ErrorKind::value, parameter_text(*rule_, parameters_.size(), p) +
                                          " is a value of a function that ein::compile traces");
      }
      if (p.impl().grad && p.impl().grad->node) {
        throw Error(ErrorKind::value, parameter_text(*rule_, parameters_.size(), p) +
                                          " was computed from others, which gradients flow on to\n"
                                          "  help: detach() it, then requires_grad(true)");
      }
      for (const Tensor& other : parameters_) {
        if (is_same(p, other)) {
          throw Error(ErrorKind::value, parameter_text(*rule_, parameters_.size(), p) +
                                            " was given before; each may be updated once");
        }
      }
      const NoGrad no_grad;
      const DType dtype = state_dtype(p.dtype());
      Slot slot{p, p.dtype() == dtype ? p : p.detach().to(dtype), {}};
      for (const StateTensor& state : rule_->state())
        slot.state.push_back(full_like(p, state.initial, dtype));
      group.slots.push_back(std::move(slot));
      parameters_.push_back(p);
    }
    groups_.push_back(std::move(group));
  }
  if (parameters_.empty()) {
    throw Error(
        ErrorKind::value,
        rule_->optimizer() +
            ": there are no parameters to update\n"
            "  help: a module has the parameters and modules that its constructor registers, "
            "by add_parameter(\"name\", member) and add_module(\"name\", member)");
  }
}

Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;

void Optimizer::shard(const Mesh& mesh, std::string_view axis) {
  const NoGrad no_grad;
  mesh_ = mesh;
  sharding_->set(sharding_->value() + 1);
  if (mesh.size(axis) == 1) return;
  for (Group& group : groups_) {
    for (Slot& slot : group.slots) {
      slot.shard = shard_pattern(slot.parameter, mesh, axis);
      slot.whole = placement(slot.parameter);
      for (Tensor& state : slot.state) state = slot.sharded(state, mesh);
      if (slot.has_master()) slot.updated = slot.sharded(slot.updated, mesh);
    }
  }
}

void Optimizer::shard_gradients() {
  const NoGrad no_grad;
  if (!mesh_)
    throw Error(ErrorKind::value, rule_->optimizer() +
                                      ": shard_gradients() is for an optimizer that "
                                      "is sharded\n  help: call shard() first");
  for (const Group& group : groups_) {
    for (const Slot& slot : group.slots) {
      if (slot.parameter.has_grad())
        slot.parameter.set_grad(slot.sharded(slot.parameter.grad(), mesh_));
    }
  }
  gradients_are_shards_ = true;
}

void Optimizer::step(const Tensor* skip) {
  if (skip && skip->dtype() != DType::boolean) {
    throw Error(ErrorKind::dtype,
                "step: skip is " + std::string(ein::name(skip->dtype())) + ", bool is wanted");
  }
  if (skip && skip->rank() != 0) {
    throw Error(ErrorKind::shape, "step: skip has shape " + skip->shape().to_string() +
                                      ", a tensor without axes is wanted");
  }
  require_gradients(*rule_, parameters_);
  sharding_->read();
  const NoGrad no_grad;
  const Tensor step = step_ + 1;
  for (const Group& group : groups_) {
    const Tensor rate = group.learning_rate_factor == 1
                            ? learning_rate_
                            : learning_rate_ * group.learning_rate_factor;
    const std::vector<Tensor> exact = rule_->numbers(rate, step, group.weight_decay);
    std::vector<Tensor> rounded;  // of parameters that are not in f64
    for (const Slot& slot : group.slots) {
      if (!slot.parameter.has_grad()) continue;
      const bool is_wide = slot.updated.dtype() == DType::f64;
      if (!is_wide && rounded.empty()) {
        for (const Tensor& number : exact) rounded.push_back(number.to(DType::f32));
      }
      const Tensor gradient = gradients_are_shards_ ? slot.parameter.grad()
                                                    : slot.sharded(slot.parameter.grad(), mesh_);
      const Tensor g = gradient.to(slot.updated.dtype());
      const bool has_master = slot.has_master();
      const Tensor p = slot.current(mesh_);
      const std::vector<Tensor> values =
          updated_values(*rule_, {p, g, slot.state, is_wide ? exact : rounded, group.weight_decay});
      for (std::size_t i = 0; i < slot.state.size(); ++i) write(slot.state[i], values[i + 1], skip);
      if (has_master) write(slot.updated, values[0], skip);
      write(slot.parameter, slot.gathered(values[0].to(slot.parameter.dtype())), skip);
    }
  }
  write(step_, step, skip);
  gradients_are_shards_ = false;
}

void Optimizer::zero_grad() {
  for (const Tensor& p : parameters_) p.zero_grad();
}

double Optimizer::learning_rate() const {
  engine::require_no_trace("learning_rate",
                           "read it outside of the function, whose runs take what "
                           "set_learning_rate() set before them");
  return learning_rate_.item();
}

void Optimizer::set_learning_rate(double learning_rate) {
  engine::require_no_trace("set_learning_rate",
                           "call it outside of the function, before each run, which takes it");
  require_in(not_negative, rule_->optimizer(), "learning_rate", learning_rate);
  learning_rate_.fill(learning_rate);
}

StateDict Optimizer::state_dict() const {
  StateDict all{{"step", step_}, {"learning_rate", learning_rate_}};
  std::size_t place = 0;
  for (const Group& group : groups_) {
    for (const Slot& slot : group.slots) {
      const std::string prefix = std::to_string(place++) + ".";
      if (slot.has_master()) all.emplace(prefix + "master", slot.updated);
      for (std::size_t i = 0; i < slot.state.size(); ++i)
        all.emplace(prefix + rule_->state()[i].name, slot.state[i]);
    }
  }
  return all;
}

void Optimizer::load_state_dict(const StateDict& state) {
  const StateDict mine = state_dict();
  for (const auto& [key, tensor] : state) {
    if (!mine.contains(key)) {
      throw Error(ErrorKind::value, rule_->optimizer() + ": the state \"" + key +
                                        "\" is unknown to an optimizer of " +
                                        std::to_string(parameters_.size()) +
                                        (parameters_.size() == 1 ? " parameter" : " parameters"));
    }
  }
  for (const auto& [key, tensor] : mine) {
    const auto found = state.find(key);
    if (found == state.end())
      throw Error(ErrorKind::value, rule_->optimizer() + ": the state \"" + key + "\" is missing");
    if (!(found->second.shape() == tensor.shape())) {
      throw Error(ErrorKind::shape, rule_->optimizer() + ": the state \"" + key + "\" has shape " +
                                        found->second.shape().to_string() + ", " +
                                        tensor.shape().to_string() + " is wanted");
    }
    if (is_complex(found->second.dtype()) && !is_complex(tensor.dtype())) {
      throw Error(ErrorKind::dtype, rule_->optimizer() + ": the state \"" + key + "\" is " +
                                        std::string(name(found->second.dtype())) + ", which " +
                                        std::string(name(tensor.dtype())) + " does not hold");
    }
    if (found->second.is_placed() && placement(found->second) != placement(tensor)) {
      throw Error(ErrorKind::placement, rule_->optimizer() + ": the state \"" + key + "\" lies \"" +
                                            placement(found->second) + "\" in place of \"" +
                                            placement(tensor) +
                                            "\"\n  help: ein::reshard it first");
    }
  }
  const auto number = [&](const char* key) {
    const Tensor& given = state.find(key)->second;
    return given.impl().is_traced() ? 0 : given.item();  // which nobody knows yet
  };
  require_in(not_negative, rule_->optimizer(), "learning_rate", number("learning_rate"));
  require_in(not_negative, rule_->optimizer(), "step", number("step"));
  const NoGrad no_grad;
  for (const auto& [key, tensor] : mine) tensor.copy_from(state.find(key)->second);
}

}  // namespace ein::optim
