// Functions of elements: a function here for each of those in detail/element_functions.hpp.
#include <nanobind/stl/string.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/map.hpp>
#include <ein/named.hpp>
#include "exchange.hpp"
#include "module.hpp"

namespace nb = nanobind;

namespace ein::python {
namespace {

/// An operand of such a function: a tensor, or a number of Python's, which takes the tensor's
/// dtype.
struct Element {
  std::optional<Tensor> tensor;
  Scalar number = 0;

  explicit Element(PyObject* object) {
    if (PyBool_Check(object)) {
      number = Scalar(object == Py_True);
    } else if (PyLong_CheckExact(object)) {
      const long long value = PyLong_AsLongLong(object);
      if (value == -1 && PyErr_Occurred() != nullptr) throw PythonError();
      number = Scalar(static_cast<std::int64_t>(value));
    } else if (PyFloat_CheckExact(object)) {
      number = Scalar(PyFloat_AsDouble(object));
    } else {
      tensor = tensor_of(object);
    }
  }
  Operand operand() const { return tensor ? Operand(*tensor) : Operand(number); }
  bool is_large() const {
    return tensor && tensor->numel().is_number() && std::int64_t{tensor->numel()} > 4096;
  }
};

template <class F>
nb::object computed(const F& function, std::initializer_list<nb::handle> given) {
  Like like;
  std::vector<Element> elements;
  std::vector<PyObject*> objects;
  std::vector<Tensor> tensors;
  bool is_large = false;
  for (const nb::handle& object : given) {
    like.see(object.ptr());
    elements.emplace_back(object.ptr());
    is_large = is_large || elements.back().is_large();
    if (!elements.back().tensor) continue;
    tensors.push_back(*elements.back().tensor);
    objects.push_back(object.ptr());
  }
  const Tensor result = [&] {
    const WithoutGil without(is_large);
    return function(elements);
  }();
  return nb::steal(like.make(result, objects, tensors));
}

/// The same where elements meet by the names of axes: map of that function.
template <class F>
nb::object mapped(const F& function, const std::string& pattern, nb::kwargs sizes,
                  std::initializer_list<nb::handle> given) {
  Like like;
  std::vector<Element> elements;
  std::vector<PyObject*> objects;
  std::vector<Tensor> tensors;
  for (const nb::handle& object : given) {
    like.see(object.ptr());
    elements.emplace_back(object.ptr());
    if (!elements.back().tensor) continue;
    tensors.push_back(*elements.back().tensor);
    objects.push_back(object.ptr());
  }
  std::vector<std::string> names;
  std::vector<AxisSize> axes;
  names.reserve(sizes.size());
  for (auto [name, size] : sizes) {
    names.push_back(nb::cast<std::string>(name));
    axes.push_back({names.back(), nb::cast<std::int64_t>(size)});
  }
  std::vector<const Tensor*> operands;
  for (const Tensor& x : tensors) operands.push_back(&x);
  // Numbers stand among the operands as they were given.
  const auto at_points = [&](std::span<const Tensor> points) {
    std::vector<Element> here = elements;
    std::size_t next = 0;
    for (Element& element : here) {
      if (element.tensor) element.tensor = points[next++];
    }
    return std::vector<Tensor>{function(here)};
  };
  const detail::TensorFunction call = [](const void* context, std::span<const Tensor> points) {
    return (*static_cast<const decltype(at_points)*>(context))(points);
  };
  const detail::PatternArgument text(pattern);
  const Tensor result = [&] {
    const WithoutGil without(true);
    return detail::run_map({text, operands, axes, call, &at_points});
  }();
  return nb::steal(like.make(result, objects, tensors));
}

/// A tensor also of a number.
Tensor whole(const Element& x) { return x.tensor ? *x.tensor : add(x.number, 0); }

}  // namespace

void add_elementwise(nb::module_& m) {
#define EIN_UNARY(function, result)                                                                \
  m.def(                                                                                           \
      #function,                                                                                   \
      [](nb::handle x) {                                                                           \
        return computed([](const std::vector<Element>& e) { return function(whole(e[0])); }, {x}); \
      },                                                                                           \
      nb::arg("x"), #function " of each element.");
  EIN_FOR_EACH_UNARY(EIN_UNARY)
  EIN_UNARY(abs, same)
#undef EIN_UNARY
#define EIN_BINARY_FUNCTION(function, result)                                                     \
  {                                                                                               \
    const auto of_elements = [](const std::vector<Element>& e) {                                  \
      return function(e[0].operand(), e[1].operand());                                            \
    };                                                                                            \
    m.def(                                                                                        \
        #function,                                                                                \
        [of_elements](nb::handle a, nb::handle b) {                                               \
          return computed(of_elements, {a, b});                                                   \
        },                                                                                        \
        nb::arg("a"), nb::arg("b"),                                                               \
        #function                                                                                 \
        " of each element of two operands, which "                                                \
        "broadcast.");                                                                            \
    m.def(                                                                                        \
        #function,                                                                                \
        [of_elements](nb::handle a, nb::handle b, const std::string& pattern, nb::kwargs sizes) { \
          return mapped(of_elements, pattern, sizes, {a, b});                                     \
        },                                                                                        \
        nb::arg("a"), nb::arg("b"), nb::arg("pattern"), nb::arg("sizes"),                         \
        "The same of elements that meet by the names of axes: 'i, j -> i j'.");                   \
  }
  EIN_FOR_EACH_BINARY(EIN_BINARY_FUNCTION)
#undef EIN_BINARY_FUNCTION
  const auto chosen = [](const std::vector<Element>& e) {
    return where(whole(e[0]), e[1].operand(), e[2].operand());
  };
  m.def(
      "where",
      [chosen](nb::handle condition, nb::handle a, nb::handle b) {
        return computed(chosen, {condition, a, b});
      },
      nb::arg("condition"), nb::arg("a"), nb::arg("b"),
      "a where the condition is not zero, else b.");
  m.def(
      "where",
      [chosen](nb::handle condition, nb::handle a, nb::handle b, const std::string& pattern,
               nb::kwargs sizes) {
        return mapped(chosen, pattern, sizes, {condition, a, b});
      },
      nb::arg("condition"), nb::arg("a"), nb::arg("b"), nb::arg("pattern"), nb::arg("sizes"),
      "The same by the names of axes: where(mask, scores, -inf, 'q k, b h q k -> b h q k'), a "
      "number without a place in the pattern.");
  m.def(
      "clamp",
      [](nb::handle x, nb::handle low, nb::handle high) {
        return computed(
            [](const std::vector<Element>& e) {
              return clamp(whole(e[0]), e[1].operand(), e[2].operand());
            },
            {x, low, high});
      },
      nb::arg("x"), nb::arg("low"), nb::arg("high"), "min(max(x, low), high).");
  m.def(
      "dropout",
      [](nb::handle x, double p) {
        return computed([p](const std::vector<Element>& e) { return dropout(whole(e[0]), p); },
                        {x});
      },
      nb::arg("x"), nb::arg("p"),
      "Each element is 0 with probability p, else divided by 1 - p (Srivastava et al. 2014).");
  m.def(
      "mse_loss",
      [](nb::handle a, nb::handle b) {
        return computed(
            [](const std::vector<Element>& e) { return mse_loss(whole(e[0]), whole(e[1])); },
            {a, b});
      },
      nb::arg("a"), nb::arg("b"), "The mean of (a - b)².");
  m.def(
      "matmul",
      [](nb::handle a, nb::handle b) {
        return computed(
            [](const std::vector<Element>& e) { return matmul(whole(e[0]), whole(e[1])); }, {a, b});
      },
      nb::arg("a"), nb::arg("b"), "The matrix product, as NumPy's matmul.");
}

}  // namespace ein::python
