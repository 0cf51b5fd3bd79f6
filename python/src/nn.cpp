// ein.nn: modules and layers. Modules of one's own are Python's: ein/nn.py.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include <ein/account.hpp>
#include <ein/error.hpp>
#include <ein/nn.hpp>
#include "exchange.hpp"
#include "module.hpp"

namespace nb = nanobind;

namespace ein::python {
namespace {

using namespace nb::literals;

/// What a module of Python's derives from: its parts are objects of Python, which it keeps.
struct OpenModule : nn::Module {
  using nn::Module::add_module;
  using nn::Module::add_parameter;
};

void add_module_class(nb::module_& m) {
  nb::class_<nn::Module>(m, "AnyModule", "What all modules have.")
      .def("named_parameters", &nn::Module::named_parameters)
      .def("parameters", &nn::Module::parameters)
      .def("parameter_count", &nn::Module::parameter_count)
      .def("account", &nn::Module::account)
      .def("state_dict", &nn::Module::state_dict, "prefix"_a = "")
      .def(
          "load_state_dict",
          [](const nn::Module& self, const StateDict& state, bool strict, std::string prefix) {
            const nn::LoadedState loaded = self.load_state_dict(state, {strict, std::move(prefix)});
            return std::pair(loaded.missing, loaded.unexpected);
          },
          "state"_a, "strict"_a = true, "prefix"_a = "",
          "Copies tensors into the parameters of their names; returns the names that are missing "
          "and those that are unexpected.")
      .def(
          "to", [](nn::Module& self, const std::string& device) { self.to(device_named(device)); },
          "device"_a)
      .def("train", &nn::Module::train, "on"_a = true)
      .def("eval", &nn::Module::eval)
      .def_prop_ro("is_training", &nn::Module::is_training)
      .def("zero_grad", &nn::Module::zero_grad);
  nb::class_<OpenModule, nn::Module>(m, "OpenModule")
      .def(nb::init<>())
      .def(
          "_add_parameter",
          [](OpenModule& self, std::string name, Tensor& parameter) {
            self.add_parameter(std::move(name), parameter);
          },
          "name"_a, "parameter"_a, nb::keep_alive<1, 3>())
      .def(
          "_add_module",
          [](OpenModule& self, std::string name, nn::Module& module) {
            self.add_module(std::move(name), module);
          },
          "name"_a, "module"_a, nb::keep_alive<1, 3>());
}

nb::object called(const nn::Layer& layer, nb::handle x) {
  Like like;
  like.see(x.ptr());
  const Tensor operand = tensor_of(x.ptr());
  const Tensor result = [&] {
    const WithoutGil without(true);
    return layer(operand);
  }();
  PyObject* const object = x.ptr();
  return nb::steal(result.requires_grad() || !result.storage()
                       ? to_ein(result)
                       : like.make(result, {&object, 1}, {&operand, 1}));
}

void add_layers(nb::module_& m) {
  nb::class_<nn::Layer, nn::Module>(m, "Layer", "A module that is a function of one tensor.")
      .def("__call__", &called, "x"_a);
  nb::class_<nn::Linear, nn::Layer>(
      m, "Linear", "x · weight (+ bias) along the last axis; weight is (inputs, outputs).")
      .def(
          "__init__",
          [](nn::Linear* self, std::int64_t inputs, std::int64_t outputs, bool bias) {
            new (self) nn::Linear(inputs, outputs, bias);
          },
          "inputs"_a, "outputs"_a, "bias"_a = true)
      .def_prop_ro("weight", [](const nn::Linear& self) { return self.weight; })
      .def_prop_ro("bias", [](const nn::Linear& self) { return self.bias; });
  nb::class_<nn::Embedding, nn::Layer>(m, "Embedding",
                                       "The rows of weight (count, dim) at integer positions.")
      .def(nb::init<std::int64_t, std::int64_t>(), "count"_a, "dim"_a)
      .def_prop_ro("weight", [](const nn::Embedding& self) { return self.weight; });
  nb::class_<nn::LayerNorm, nn::Layer>(m, "LayerNorm", "Layer norm over the last axis.")
      .def(nb::init<std::int64_t, bool, double>(), "dim"_a, "bias"_a = true, "eps"_a = 1e-5)
      .def_prop_ro("weight", [](const nn::LayerNorm& self) { return self.weight; })
      .def_prop_ro("bias", [](const nn::LayerNorm& self) { return self.bias; });
  nb::class_<nn::RMSNorm, nn::Layer>(m, "RMSNorm", "RMS norm over the last axis.")
      .def(nb::init<std::int64_t, double, bool>(), "dim"_a, "eps"_a = 1e-6, "adds_one"_a = false)
      .def_prop_ro("weight", [](const nn::RMSNorm& self) { return self.weight; });
  nb::class_<nn::Dropout, nn::Layer>(m, "Dropout", "ein.dropout in training, else the identity.")
      .def(nb::init<double>(), "p"_a);
  nb::class_<nn::EinMix, nn::Layer>(
      m, "EinMix", "A linear layer as a pattern: EinMix('b i -> b o', 'i o', 'o', i=4, o=8).")
      .def(
          "__init__",
          [](nn::EinMix* self, const std::string& pattern, const std::string& weight_axes,
             const std::string& bias_axes, nb::kwargs sizes) {
            std::vector<RuntimeAxisSize> given;
            for (auto [name, size] : sizes)
              given.push_back({nb::cast<std::string>(name), nb::cast<std::int64_t>(size)});
            new (self) nn::EinMix(pattern, weight_axes, bias_axes, given);
          },
          "pattern"_a, "weight_axes"_a, "bias_axes"_a = "", "sizes"_a)
      .def_prop_ro("weight", [](const nn::EinMix& self) { return self.weight; })
      .def_prop_ro("bias", [](const nn::EinMix& self) { return self.bias; });
  nb::class_<nn::Decoder, nn::Layer>(
      m, "Decoder", "Logits of the next token at each position: (batch, positions) integers.")
      .def(
          "__init__",
          [](nn::Decoder* self, const std::string& model) {
            new (self) nn::Decoder(nn::decoder_config(model));
          },
          "model"_a,
          "With new weights: of a published one by its name, a config.json, or a directory that "
          "has "
          "one.");
  m.def(
      "load_decoder", [](const std::string& directory) { return nn::load_decoder(directory); },
      "directory"_a, "The decoder of a model directory of Hugging Face, with its weights.");
}

}  // namespace

void add_nn(nb::module_& m) {
  nb::module_ part = m.def_submodule("_nn", "Modules and layers.");
  add_module_class(part);
  add_layers(part);
}

}  // namespace ein::python
