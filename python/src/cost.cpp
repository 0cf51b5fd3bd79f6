// What a call is and costs, before it runs: of shapes, or of arrays, whose elements are not read.
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include <ein/cost.hpp>
#include <ein/error.hpp>
#include <ein/graph.hpp>
#include "calls.hpp"
#include "costs.hpp"
#include "draw/graph.hpp"
#include "exchange.hpp"
#include "graph/call.hpp"
#include "module.hpp"
#include "passes/complex.hpp"
#include "runtime/call_pattern.hpp"

namespace nb = nanobind;

namespace ein::python {
namespace {

Operation operation_named(std::string_view word) {
  for (int i = 0; i < operation_count; ++i) {
    const auto op = static_cast<Operation>(i);
    if (info(op).name == word && stands_alone(op) && op != Operation::parse_shape) return op;
  }
  throw Error(ErrorKind::value, "there is no operation '" + std::string(word) +
                                    "'\n  help: it is the name of a function, such as 'einsum'");
}

Graph graph_of_call(const Arguments& given) {
  std::vector<OperandType> types;
  std::vector<Shape> shapes;
  for (const Tensor& operand : given.operands) {
    types.push_back({operand.shape(), operand.dtype()});
    shapes.push_back(operand.shape());
  }
  const bool is_stacked = given.is_list && (info(given.op).reads & grammar::CallSays::lists) != 0;
  const CallPattern parsed(given.op, detail::PatternArgument(given.pattern), given.sizes, shapes,
                           is_stacked);
  PatternCall call{.op = given.op, .pattern = parsed.pattern, .sizes = given.sizes};
  call.reduction = given.reduction;
  call.stacked = is_stacked;
  call.named = given.named;
  call.dtype = given.named.dtype;
  call.lone_sums = given.sums_alone ? grammar::LoneSums::allowed : grammar::LoneSums::refused;
  return without_complex(build_graph(call, types), std::string(name(given.op)));
}

using python::number;
nb::object number(const Polynomial& formula) { return nb::str(formula.to_string().c_str()); }

/// Of numbers or of formulas.
template <class N>
nb::dict dict_of(const Tally<N>& tally) {
  nb::dict all;
  all["mul"] = number(tally.mul);
  all["add"] = number(tally.add);
  all["div"] = number(tally.div);
  all["compare"] = number(tally.compare);
  for (std::size_t i = 0; i < transcendental_ops.size(); ++i) {
    if (tally.transcendental[i] == N{}) continue;
    const std::string function(info(transcendental_ops[i]).name);
    all[function.c_str()] = number(tally.transcendental[i]);
  }
  all["bytes_read"] = number(tally.bytes_read);
  all["bytes_written"] = number(tally.bytes_written);
  all["flops"] = number(tally.strict());
  all["model"] = number(tally.model);
  all["matmul_only"] = number(tally.matmul_only);
  return all;
}

}  // namespace

nb::object number(Count count) {
  const std::string digits = to_string(count);
  return nb::steal(PyLong_FromString(digits.c_str(), nullptr, 10));
}

nb::dict costs(const Cost& cost) { return dict_of(cost); }

void add_cost(nb::module_& m) {
  nb::class_<Graph>(m, "Graph", "What a call computes: operations on values with named axes.")
      .def("__str__", [](const Graph& graph) { return to_string(graph); })
      .def("__repr__", [](const Graph& graph) { return to_string(graph); })
      .def("_repr_svg_", [](const Graph& graph) { return to_svg(graph); })
      .def(
          "svg", [](const Graph& graph) { return to_svg(graph); }, "The picture, as a text.")
      .def(
          "cost", [](const Graph& graph) { return dict_of(cost(graph)); },
          "Exact numbers of operations and bytes; `model` is the textbooks' count.")
      .def(
          "cost_formula", [](const Graph& graph) { return dict_of(cost_formula(graph)); },
          "The same as formulas in the names of the axes.");
  m.def(
      "graph",
      [](const std::string& operation, nb::args given, nb::kwargs words) {
        std::vector<nb::object> kept;
        std::vector<PyObject*> values;
        DType of = DType::f32;
        nb::list names;
        if (words.contains("of")) of = dtype_of_python(nb::object(words["of"]).ptr());
        for (nb::handle one : given) {
          // The shape of an operand: one element that is all of them.
          kept.push_back(nb::borrow(one));
          if (PyTuple_Check(one.ptr())) {
            std::vector<std::int64_t> sizes;
            for (nb::handle size : one) sizes.push_back(nb::cast<std::int64_t>(size));
            const Shape shape{std::span<const std::int64_t>(sizes)};
            checked_numel(shape, static_cast<std::int64_t>(size_of(of)));
            kept.back() = nb::steal(to_ein(
                Tensor(Storage::allocate(size_of(of)), of, shape, Strides(shape.rank(), 0))));
          }
          values.push_back(kept.back().ptr());
        }
        const std::size_t count = values.size();
        for (auto [key, value] : words) {
          if (nb::cast<std::string>(key) == "of") continue;
          names.append(key);
          values.push_back(value.ptr());
        }
        const nb::tuple keys(names);
        return graph_of_call(
            Arguments(operation_named(operation), values.data(), count, keys.ptr()));
      },
      nb::arg("operation"), nb::arg("args"), nb::arg("kwargs"),
      "The graph of a call: graph('einsum', (2, 3), (3, 4), 'i k, k j -> i j'). A tuple is the "
      "shape of an operand of dtype `of`, f32 without.");
}

}  // namespace ein::python
