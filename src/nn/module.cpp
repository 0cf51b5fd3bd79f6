#include <ein/nn/module.hpp>

#include <algorithm>
#include <set>

#include <ein/autograd.hpp>
#include <ein/error.hpp>
#include "runtime/setting.hpp"
#include "runtime/tape.hpp"
#include "runtime/trace.hpp"

namespace ein::nn {

Module::Module() : training_(std::make_shared<detail::Setting>(true)) {}
Module::~Module() = default;

std::vector<std::pair<std::string, Tensor>> Module::named_parameters() const {
  std::vector<std::pair<std::string, Tensor>> all;
  std::set<const void*> seen;
  const auto collect = [&](const auto& self, const Module& module,
                           const std::string& prefix) -> void {
    for (const auto& [name, parameter] : module.parameters_) {
      if (seen.insert(&parameter->impl()).second) all.emplace_back(prefix + name, *parameter);
    }
    for (const auto& [name, child] : module.children_) self(self, *child, prefix + name + ".");
  };
  collect(collect, *this, "");
  return all;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> all;
  for (auto& [name, parameter] : named_parameters()) all.push_back(std::move(parameter));
  return all;
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

StateDict Module::state_dict(const std::string& prefix) const {
  StateDict state;
  for (const auto& [name, parameter] : named_parameters())
    state.emplace(prefix + name, parameter.detach());
  return state;
}

LoadedState Module::load_state_dict(const StateDict& state, LoadStateOptions options) const {
  const StateDict mine = state_dict(options.prefix);
  LoadedState left;
  std::string missing, unexpected, misshapen, unreal, elsewhere;
  const auto list = [](std::string& names, const std::string& name) {
    names += (names.empty() ? "" : ", ") + name;
  };
  for (const auto& [name, parameter] : mine) {
    const auto given = state.find(name);
    if (given == state.end()) {
      left.missing.push_back(name);
      list(missing, name);
    } else if (!(given->second.shape() == parameter.shape())) {
      list(misshapen, name + " " + given->second.shape().to_string() + " for " +
                          parameter.shape().to_string());
    } else if (is_complex(given->second.dtype()) && !is_complex(parameter.dtype())) {
      list(unreal, name);
    } else if (given->second.is_placed() && placement(given->second) != placement(parameter)) {
      list(elsewhere,
           name + " \"" + placement(given->second) + "\" for \"" + placement(parameter) + "\"");
    }
  }
  for (const auto& [name, tensor] : state) {
    if (mine.contains(name) || !name.starts_with(options.prefix)) continue;
    left.unexpected.push_back(name);
    list(unexpected, name);
  }
  std::string text;
  if (options.strict && !missing.empty()) text += "\n  missing: " + missing;
  if (options.strict && !unexpected.empty()) text += "\n  unexpected: " + unexpected;
  if (!misshapen.empty()) text += "\n  of another shape: " + misshapen;
  if (!unreal.empty()) text += "\n  complex, where the model's are real: " + unreal;
  if (!text.empty())
    throw Error(ErrorKind::value, "load_state_dict: the tensors are not the model's" + text);
  if (!elsewhere.empty())
    throw Error(ErrorKind::placement,
                "load_state_dict: tensors are placed otherwise than the model's: " + elsewhere +
                    "\n  help: ein::reshard them first");
  const NoGrad no_grad;
  for (const auto& [name, parameter] : mine) {
    const auto given = state.find(name);
    if (given != state.end()) parameter.copy_from(given->second);
  }
  return left;
}

std::string Module::Registered::first_of(std::string_view& names) {
  const std::size_t comma = names.find(',');
  std::string_view name = names.substr(0, comma);
  names.remove_prefix(comma == names.npos ? names.size() : comma + 1);
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\t'; };
  while (!name.empty() && is_space(name.front())) name.remove_prefix(1);
  while (!name.empty() && is_space(name.back())) name.remove_suffix(1);
  return std::string(name);
}

void Module::to(Device device) {
  Moved moved;
  move_parameters(
      "", [&](const std::string&, const Tensor& parameter) { return parameter.to(device); }, moved);
}

void Module::place(
    const Mesh& mesh,
    const std::function<std::string(const std::string& name, const Tensor&)>& pattern) {
  Moved moved;
  const auto move = [&](const std::string& name, const Tensor& parameter) {
    const std::string text = pattern(name, parameter);
    return text.empty() ? parameter : ein::place(parameter, mesh, runtime(text));
  };
  move_parameters("", move, moved);
}

void Module::shard(const Mesh& mesh, std::string_view axis) {
  Moved moved;
  const auto move = [&](const std::string&, const Tensor& parameter) {
    const std::string pattern = shard_pattern(parameter, mesh, axis);
    if (pattern.empty()) return parameter;
    if (!parameter.is_placed()) return ein::place(parameter, mesh, runtime(pattern));
    const std::string way = placement(parameter) + " -> " + pattern;
    return reshard(parameter, runtime(way));
  };
  move_parameters("", move, moved);
  mark_sharded(axis);
}

void Module::mark_sharded(std::string_view axis) {
  sharded_over_ = axis;
  for (const auto& [name, child] : children_) child->mark_sharded(axis);
}

void Module::move_parameters(const std::string& prefix, const Move& move, Moved& moved) {
  for (const auto& [name, parameter] : parameters_) {
    const void* const key = &parameter->impl();
    if (!moved.contains(key)) {
      const Tensor before = parameter->detach(), after = move(prefix + name, before);
      const bool stays = &after.impl() == &before.impl();
      if (!stays) engine::mark_replaced(*parameter);
      moved.emplace(key,
                    std::pair(*parameter, stays ? *parameter : after.detach().requires_grad(true)));
    }
    *parameter = moved.at(key).second;
  }
  for (const auto& [name, child] : children_)
    child->move_parameters(prefix + name + ".", move, moved);
}

bool Module::is_training() const { return training_->read() != 0; }

void Module::train(bool on) {
  training_->set(on);
  for (const auto& [name, child] : children_) child->train(on);
}

void Module::zero_grad() const {
  for (const Tensor& parameter : parameters()) parameter.zero_grad();
}

void Module::add_parameter(std::string name, Tensor& parameter) {
  require_new_name(name);
  // How its first values are computed is no matter of its shape.
  if (engine::Trace* const shapes = engine::Trace::of_shapes())
    parameter = shapes->without_elements(parameter.shape(), parameter.dtype(), parameter.device());
  parameter.requires_grad(true);
  parameters_.emplace_back(std::move(name), &parameter);
}

void Module::add_module(std::string name, Module& child) {
  require_new_name(name);
  if (child.contains(*this))
    throw Error(ErrorKind::value, "add_module: '" + name + "' would be a module inside itself");
  child.train(training_->value() != 0);
  children_.emplace_back(std::move(name), &child);
}

void Module::require_new_name(const std::string& name) const {
  const auto has_name = [&](const auto& entry) { return entry.first == name; };
  const char* const wrong = name.empty()                          ? "is empty"
                            : name.find('.') != std::string::npos ? "has a dot, which joins names"
                            : std::any_of(parameters_.begin(), parameters_.end(), has_name) ||
                                    std::any_of(children_.begin(), children_.end(), has_name)
                                ? "is taken"
                                : nullptr;
  if (wrong)
    throw Error(ErrorKind::value, "the name '" + name + "' of a parameter or module " + wrong);
}

bool Module::contains(const Module& other) const {
  return this == &other || std::any_of(children_.begin(), children_.end(), [&](const auto& child) {
           return child.second->contains(other);
         });
}

Tensor Sequential::forward(const Tensor& x) const {
  Tensor y = x;
  for (const auto& layer : layers_) y = layer->forward(y);
  return y;
}

}  // namespace ein::nn
