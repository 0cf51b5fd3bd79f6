// ein.optim: optimizers and schedules of the learning rate.
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include <ein/error.hpp>
#include <ein/named.hpp>
#include <ein/optim.hpp>
#include <ein/schedule.hpp>
#include "exchange.hpp"
#include "module.hpp"

namespace nb = nanobind;

namespace ein::python {
namespace {

using namespace nb::literals;

/// A list of tensors, or of dicts: {"parameters": [...], "weight_decay": 0, "learning_rate_factor":
/// 1}.
optim::ParameterGroups groups_of(nb::handle parameters) {
  std::vector<Tensor> alone;
  std::vector<optim::ParameterGroup> groups;
  for (nb::handle one : parameters) {
    if (!PyDict_Check(one.ptr())) {
      alone.push_back(nb::cast<Tensor>(one));
      continue;
    }
    optim::ParameterGroup& group = groups.emplace_back();
    for (auto [key, value] : nb::cast<nb::dict>(one)) {
      const std::string name = nb::cast<std::string>(key);
      if (name == "parameters")
        group.parameters = nb::cast<std::vector<Tensor>>(value);
      else if (name == "weight_decay")
        group.weight_decay = nb::cast<double>(value);
      else if (name == "learning_rate_factor")
        group.learning_rate_factor = nb::cast<double>(value);
      else
        throw Error(ErrorKind::value, "optim: a group has no '" + name +
                                          "'\n  help: it has parameters, weight_decay and "
                                          "learning_rate_factor");
    }
  }
  if (groups.empty()) return alone;
  if (!alone.empty())
    throw Error(ErrorKind::value, "optim: parameters are tensors, or groups, and not both");
  return groups;
}

template <class O>
auto optimizer(nb::module_& m, const char* name, const char* text) {
  return nb::class_<O, optim::Optimizer>(m, name, text);
}

void add_optimizers(nb::module_& m) {
  nb::class_<optim::Optimizer>(m, "Optimizer", "What all optimizers have.")
      .def(
          "step",
          [](optim::Optimizer& self) {
            const WithoutGil without(true);
            self.step();
          },
          "Updates every parameter that has a gradient. A function that ein.compile traces may.")
      .def("zero_grad", &optim::Optimizer::zero_grad, "Drops the parameters' gradients.")
      .def_prop_rw("learning_rate", &optim::Optimizer::learning_rate,
                   &optim::Optimizer::set_learning_rate)
      .def_prop_ro("parameters", [](const optim::Optimizer& self) { return self.parameters(); })
      .def("state_dict", &optim::Optimizer::state_dict)
      .def("load_state_dict", &optim::Optimizer::load_state_dict, "state"_a);
  const auto decay = [](double otherwise) { return "weight_decay"_a = otherwise; };
  const optim::SGDOptions sgd;
  optimizer<optim::SGD>(m, "SGD", "Stochastic gradient descent, with momentum.")
      .def(
          "__init__",
          [](optim::SGD* self, nb::handle parameters, double rate, double momentum,
             double dampening, bool nesterov, double weight_decay) {
            new (self) optim::SGD(groups_of(parameters),
                                  {rate, momentum, dampening, nesterov, weight_decay});
          },
          "parameters"_a, "learning_rate"_a = sgd.learning_rate, "momentum"_a = sgd.momentum,
          "dampening"_a = sgd.dampening, "nesterov"_a = sgd.nesterov, decay(sgd.weight_decay));
  const optim::AdaGradOptions adagrad;
  optimizer<optim::AdaGrad>(m, "AdaGrad", "Duchi, Hazan, Singer 2011.")
      .def(
          "__init__",
          [](optim::AdaGrad* self, nb::handle parameters, double rate, double rate_decay,
             double initial, double eps, bool inside, double weight_decay) {
            new (self) optim::AdaGrad(groups_of(parameters),
                                      {rate, rate_decay, initial, eps, inside, weight_decay});
          },
          "parameters"_a, "learning_rate"_a = adagrad.learning_rate,
          "learning_rate_decay"_a = adagrad.learning_rate_decay,
          "initial_accumulator"_a = adagrad.initial_accumulator, "eps"_a = adagrad.eps,
          "eps_inside_root"_a = adagrad.eps_inside_root, decay(adagrad.weight_decay));
  const optim::RMSPropOptions rms;
  optimizer<optim::RMSProp>(m, "RMSProp", "Tieleman, Hinton 2012.")
      .def(
          "__init__",
          [](optim::RMSProp* self, nb::handle parameters, double rate, double alpha, double eps,
             double momentum, bool centered, double weight_decay) {
            new (self) optim::RMSProp(groups_of(parameters),
                                      {rate, alpha, eps, momentum, centered, weight_decay});
          },
          "parameters"_a, "learning_rate"_a = rms.learning_rate, "alpha"_a = rms.alpha,
          "eps"_a = rms.eps, "momentum"_a = rms.momentum, "centered"_a = rms.centered,
          decay(rms.weight_decay));
  const auto add_adam = [&]<class O>(std::type_identity<O>, const char* name, const char* text) {
    const optim::AdamOptions adam;
    optimizer<O>(m, name, text)
        .def(
            "__init__",
            [](O* self, nb::handle parameters, double rate, std::array<double, 2> betas, double eps,
               double weight_decay, bool before, bool last) {
              new (self) O(groups_of(parameters), {rate, betas, eps, weight_decay, before, last});
            },
            "parameters"_a, "learning_rate"_a = adam.learning_rate, "betas"_a = adam.betas,
            "eps"_a = adam.eps, decay(adam.weight_decay),
            "eps_before_correction"_a = adam.eps_before_correction,
            "decay_last"_a = adam.decay_last);
  };
  add_adam(std::type_identity<optim::Adam>(), "Adam", "Kingma, Ba 2015.");
  add_adam(std::type_identity<optim::AdamW>(), "AdamW",
           "Adam with decoupled weight decay (Loshchilov, Hutter 2019).");
  const optim::MuonOptions muon;
  optimizer<optim::Muon>(m, "Muon", "Of matrices: updates made orthogonal (Jordan et al. 2024).")
      .def(
          "__init__",
          [](optim::Muon* self, nb::handle parameters, double rate, double momentum, bool nesterov,
             double weight_decay, std::int64_t steps, double eps, bool as_adamw,
             bool outputs_first) {
            optim::MuonOptions options{rate, momentum, nesterov, weight_decay, steps};
            options.eps = eps;
            options.outputs_first = outputs_first;
            if (as_adamw) options.scale = optim::MuonOptions::Scale::rms_of_adamw;
            new (self) optim::Muon(groups_of(parameters), options);
          },
          "parameters"_a, "learning_rate"_a = muon.learning_rate, "momentum"_a = muon.momentum,
          "nesterov"_a = muon.nesterov, decay(muon.weight_decay), "steps"_a = muon.steps,
          "eps"_a = muon.eps, "rms_of_adamw"_a = false, "outputs_first"_a = muon.outputs_first);
  const optim::LAMBOptions lamb;
  optimizer<optim::LAMB>(m, "LAMB", "You et al. 2020.")
      .def(
          "__init__",
          [](optim::LAMB* self, nb::handle parameters, double rate, std::array<double, 2> betas,
             double eps, double weight_decay) {
            new (self) optim::LAMB(groups_of(parameters), {rate, betas, eps, weight_decay});
          },
          "parameters"_a, "learning_rate"_a = lamb.learning_rate, "betas"_a = lamb.betas,
          "eps"_a = lamb.eps, decay(lamb.weight_decay));
}

template <class S>
nb::class_<S> schedule(nb::module_& m, const char* name, const char* text) {
  return nb::class_<S>(m, name, text)
      .def("__call__", &S::operator(), "step"_a, "The learning rate of a step, counted from 0.");
}

void add_schedules(nb::module_& m) {
  schedule<optim::Constant>(m, "Constant", "The same rate behind the warm-up.")
      .def(
          "__init__",
          [](optim::Constant* self, double rate, std::int64_t warmup) {
            new (self) optim::Constant{rate, warmup};
          },
          "learning_rate"_a, "warmup_steps"_a = 0);
  const auto add_falling = [&]<class S>(std::type_identity<S>, const char* name, const char* text) {
    schedule<S>(m, name, text)
        .def(
            "__init__",
            [](S* self, double rate, std::int64_t end, double least, std::int64_t warmup) {
              new (self) S{rate, least, warmup, end};
            },
            "learning_rate"_a, "end"_a, "min_learning_rate"_a = 0.0, "warmup_steps"_a = 0);
  };
  add_falling(std::type_identity<optim::Linear>(), "Linear", "A straight line.");
  add_falling(std::type_identity<optim::CosineWithWarmup>(), "CosineWithWarmup",
              "Half a period of a cosine (Loshchilov, Hutter 2017).");
  schedule<optim::WSD>(m, "WSD", "Warm-up, stable, decay (Hu et al. 2024).")
      .def(
          "__init__",
          [](optim::WSD* self, double rate, std::int64_t decay_begin, std::int64_t end,
             double least, std::int64_t warmup) {
            new (self) optim::WSD{rate, least, warmup, decay_begin, end};
          },
          "learning_rate"_a, "decay_begin"_a, "end"_a, "min_learning_rate"_a = 0.0,
          "warmup_steps"_a = 0);
}

}  // namespace

void add_optim(nb::module_& m) {
  nb::module_ part = m.def_submodule("_optim", "Optimizers, with the formulas of PyTorch's.");
  add_optimizers(part);
  add_schedules(part);
  part.def(
      "clip_grad_norm",
      [](std::vector<Tensor> parameters, double max_norm, bool error_if_nonfinite) {
        return clip_grad_norm(parameters, max_norm, error_if_nonfinite);
      },
      "parameters"_a, "max_norm"_a, "error_if_nonfinite"_a = false,
      "Scales all gradients to a norm of at most max_norm; returns the norm.");
}

}  // namespace ein::python
