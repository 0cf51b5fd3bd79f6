// Functions of functions: compile, grad, vmap. What Python calls is traced by ein.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/error.hpp>
#include <ein/vmap.hpp>
#include "costs.hpp"
#include "module.hpp"
#include "python_function.hpp"

namespace nb = nanobind;

namespace ein::python {

namespace {

ResultForm form_of(nb::handle made) {
  using Kind = ResultForm::Kind;
  if (made.is_none()) return {Kind::nothing, 0};
  if (PyTuple_Check(made.ptr())) return {Kind::tuple, nb::len(made)};
  if (PyList_Check(made.ptr())) return {Kind::list, nb::len(made)};
  return {};
}

}  // namespace

std::vector<Tensor> call_python(nb::handle function, std::span<const Tensor> arguments,
                                ResultForm* form) {
  const WithGil held;
  try {
    nb::list given;
    for (const Tensor& x : arguments) given.append(nb::steal(to_ein(x)));
    const nb::object made = function(*given);
    const ResultForm found = form_of(made);
    if (form != nullptr) *form = found;
    std::vector<Tensor> results;
    if (found.kind == ResultForm::Kind::one) {
      results.push_back(tensor_of(made.ptr()));
    } else if (found.kind != ResultForm::Kind::nothing) {
      for (nb::handle one : made) results.push_back(tensor_of(one.ptr()));
    }
    return results;
  } catch (const PythonError&) {
    throw nb::python_error();
  }
}

Tensor call_python_for_one(const char* who, nb::handle function,
                           std::span<const Tensor> arguments) {
  std::vector<Tensor> results = call_python(function, arguments);
  if (results.size() == 1) return std::move(results.front());
  throw Error(ErrorKind::value, std::string(who) + ": the function returns " +
                                    std::to_string(results.size()) + " tensors, and one is wanted");
}

GivenArrays::GivenArrays(nb::args given) {
  for (nb::handle one : given) {
    like.see(one.ptr());
    tensors.push_back(tensor_of(one.ptr()));
    objects.push_back(one.ptr());
  }
}

nb::object GivenArrays::result(const Tensor& made) const {
  return nb::steal(like.make(made, objects, tensors));
}

nb::object GivenArrays::results(const std::vector<Tensor>& made, ResultForm form) const {
  if (form.kind == ResultForm::Kind::nothing) return nb::none();
  if (form.kind == ResultForm::Kind::one) return result(made.front());
  nb::list all;
  for (const Tensor& one : made) all.append(result(one));
  return form.kind == ResultForm::Kind::list ? nb::object(all) : nb::object(nb::tuple(all));
}

namespace {

// --- compile ---

/// ein.Compiled.
class CompiledInPython {
 public:
  CompiledInPython(nb::object function, std::vector<std::string> types)
      : function_(std::move(function)), types_(std::move(types)) {}

  nb::object call(nb::args given) {
    const GivenArrays arrays(given);
    const std::vector<Tensor> results = [&] {
      const auto types = types_of(arrays.tensors.size());
      const WithoutGil without(true);
      return compiled_.run(arrays.tensors, types, &traced, this);
    }();
    return arrays.results(results, form_.value_or(ResultForm()));
  }
  void prepare(nb::args given) {
    const GivenArrays arrays(given);
    const auto types = types_of(arrays.tensors.size());
    const WithoutGil without(true);
    compiled_.prepare(arrays.tensors, types, &traced, this);
  }
  const detail::CompiledFunction& compiled() const { return compiled_; }
  detail::CompiledFunction& compiled() { return compiled_; }
  nb::object& function() { return function_; }

 private:
  using Types = std::vector<std::optional<std::string_view>>;
  Types types_of(std::size_t arguments) const {
    if (types_.empty()) return Types(arguments);
    if (types_.size() != arguments) detail::wrong_number_of_types(types_.size(), arguments);
    return {types_.begin(), types_.end()};
  }
  static std::vector<Tensor> traced(const void* context, std::span<const Tensor> arguments) {
    auto& self = *const_cast<CompiledInPython*>(static_cast<const CompiledInPython*>(context));
    ResultForm form;
    std::vector<Tensor> results = call_python(self.function_, arguments, &form);
    const WithGil held;  // guards form_
    if (self.form_ && *self.form_ != form) {
      throw Error(
          ErrorKind::value,
          "compile: the function returns one tensor, a tuple or a list of as many, the same "
          "in each call; now it returns " +
              std::to_string(form.count) + " and before " + std::to_string(self.form_->count));
    }
    self.form_ = form;
    return results;
  }

  nb::object function_;
  std::vector<std::string> types_;
  std::optional<ResultForm> form_;
  detail::CompiledFunction compiled_;
};

/// The function may hold the compiled one itself: Python's collector sees the reference.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  nb::handle function = nb::inst_ptr<CompiledInPython>(self)->function();
  Py_VISIT(function.ptr());
  return 0;
}
int clear(PyObject* self) {
  nb::inst_ptr<CompiledInPython>(self)->function().reset();
  return 0;
}
PyType_Slot compiled_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                                {0, nullptr}};

nb::dict dict_of(const MemoryPlan& memory) {
  nb::dict all;
  all["arguments"] = memory.arguments;
  all["state"] = memory.state;
  all["results"] = memory.results;
  all["arena"] = memory.arena;
  all["workspace"] = memory.workspace;
  all["unshared"] = memory.unshared;
  all["peak"] = memory.peak();
  return all;
}

void add_compile(nb::module_& m) {
  nb::class_<CompiledInPython>(m, "Compiled", nb::type_slots(compiled_slots),
                               "A function that ein.compile traces: one program for each dtype, "
                               "shape and strides of its arguments.")
      .def("__call__", &CompiledInPython::call, nb::arg("arguments"))
      .def("prepare", &CompiledInPython::prepare, nb::arg("arguments"),
           "Makes the program for arguments like these without running it.")
      .def(
          "keep_at_most",
          [](CompiledInPython& self, std::size_t programs) {
            self.compiled().keep_at_most(programs);
          },
          nb::arg("programs"))
      .def(
          "cost", [](const CompiledInPython& self) { return costs(self.compiled().cost()); },
          "Of one run of the latest program, counted from the loops that run.")
      .def(
          "memory", [](const CompiledInPython& self) { return dict_of(self.compiled().memory()); },
          "What the latest program holds, in bytes.")
      .def(
          "graph", [](const CompiledInPython& self) { return self.compiled().graph(); },
          "The graph after all passes.")
      .def(
          "account", [](const CompiledInPython& self) { return self.compiled().account(); },
          "Cost and memory as a tree, by phase and by kind.")
      .def(
          "text", [](const CompiledInPython& self) { return self.compiled().text(); },
          "The graph, the loop nests and their schedules.")
      .def("svg", [](const CompiledInPython& self) { return self.compiled().svg(); })
      .def("_repr_svg_", [](const CompiledInPython& self) { return self.compiled().svg(); });
  m.def(
      "compile",
      [](nb::object function, nb::args types) {
        std::vector<std::string> texts;
        for (nb::handle one : types) texts.push_back(nb::cast<std::string>(one));
        return new CompiledInPython(std::move(function), std::move(texts));
      },
      nb::arg("function"), nb::arg("types"),
      "A function of tensors as one program: compile(f)(x, y). With a text for each argument, "
      "compile(f, 'b=8 s c', 'b=8 s'), one trace serves all lengths of the axes without a "
      "number.\n\n"
      "The function is called while it is traced, with ein.Tensors without elements; it returns a "
      "tensor, a tuple or list of them, or None. Tensors from outside are its state.");
}

// --- derivatives ---

/// What is called when the function that grad makes is: it keeps `function`.
template <class F>
nb::object function_of_arrays(nb::object function, const char* name, const char* text,
                              const F& made) {
  return nb::cpp_function(
      [function = std::move(function), made](nb::args given) -> nb::object {
        return made(function, GivenArrays(given));
      },
      nb::arg("arguments"), nb::name(name), text);
}

std::pair<nb::object, nb::object> value_and_gradients_in_python(nb::handle function,
                                                                const GivenArrays& given) {
  if (given.tensors.empty())
    throw Error(ErrorKind::value, "grad: there is no argument to differentiate by");
  const auto [value, gradients] = [&] {
    const WithoutGil without(true);
    return detail::value_and_gradients(
        [&](std::span<const Tensor> x) { return call_python_for_one("grad", function, x); },
        given.tensors);
  }();
  const bool is_one = gradients.size() == 1;
  const ResultForm form{is_one ? ResultForm::Kind::one : ResultForm::Kind::tuple, gradients.size()};
  return {given.result(value), given.results(gradients, form)};
}

void add_derivatives(nb::module_& m) {
  m.def(
      "grad",
      [](nb::object function) {
        return function_of_arrays(std::move(function), "gradient", "The gradient of a function.",
                                  [](nb::handle f, const GivenArrays& given) {
                                    return value_and_gradients_in_python(f, given).second;
                                  });
      },
      nb::arg("function"),
      "The gradient of a function whose result is a scalar, as a function: grad(f)(x) is like x, "
      "grad(f)(x, y) a tuple. It can be differentiated again.");
  m.def(
      "value_and_grad",
      [](nb::object function) {
        return function_of_arrays(
            std::move(function), "value_and_gradient", "A function's value and its gradient.",
            [](nb::handle f, const GivenArrays& given) -> nb::object {
              auto [value, gradients] = value_and_gradients_in_python(f, given);
              return nb::make_tuple(value, gradients);
            });
      },
      nb::arg("function"), "The same with the function's value: a tuple of both.");
  m.def(
      "gradients",
      [](const Tensor& result, std::vector<Tensor> inputs, std::optional<Tensor> cotangent,
         bool create_graph) {
        const WithoutGil without(true);
        return cotangent ? gradients(result, *cotangent, inputs, create_graph)
                         : gradients(result, inputs, create_graph);
      },
      nb::arg("result"), nb::arg("inputs"), nb::arg("cotangent") = nb::none(),
      nb::arg("create_graph") = false,
      "d result / d input for each input, an ein.Tensor; no grad changes.");
}

// --- vmap ---

void add_vmap(nb::module_& m) {
  m.def(
      "vmap",
      [](nb::object function, std::string pattern, bool same_random_numbers) {
        return function_of_arrays(
            std::move(function), "over_axis", "A function over one more axis.",
            [pattern = std::move(pattern), same_random_numbers](nb::handle f,
                                                                const GivenArrays& given) {
              struct Context {
                nb::handle function;
                ResultForm form;
              } context{f, {}};
              std::vector<const Tensor*> operands;
              for (const Tensor& x : given.tensors) operands.push_back(&x);
              const auto call = [](const void* at, std::span<const Tensor> x) {
                auto& here = *const_cast<Context*>(static_cast<const Context*>(at));
                return call_python(here.function, x, &here.form);
              };
              const std::vector<Tensor> results = [&] {
                const WithoutGil without(true);
                return detail::run_vmap({pattern, operands, call, &context, {same_random_numbers}});
              }();
              return given.results(results, context.form);
            });
      },
      nb::arg("function"), nb::arg("pattern"), nb::arg("same_random_numbers") = false,
      "A function over one more axis, as one call: vmap(f, 'n')(x, y) is f at each index of the "
      "first axis of both. 'n ..., ... n' says where each argument has it.");
}

}  // namespace

void add_functions(nb::module_& m) {
  add_compile(m);
  add_derivatives(m);
  add_vmap(m);
}

}  // namespace ein::python
