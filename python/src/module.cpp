#include "module.hpp"

#include <nanobind/stl/string.h>

#include <new>
#include <string>

#include <ein/error.hpp>
#include <ein/version.hpp>
#include "exchange.hpp"

namespace nb = nanobind;

namespace ein::python {
namespace {

PyObject*& error_type() {
  static PyObject* type = nullptr;
  return type;
}

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
#define EIN_KIND(kind)  \
  case ErrorKind::kind: \
    return #kind;
    EIN_KIND(syntax)
    EIN_KIND(pattern)
    EIN_KIND(arity)
    EIN_KIND(rank)
    EIN_KIND(size)
    EIN_KIND(divisibility)
    EIN_KIND(inference)
    EIN_KIND(axis_argument)
    EIN_KIND(dtype)
    EIN_KIND(reduction)
    EIN_KIND(overflow)
    EIN_KIND(shape)
    EIN_KIND(value)
    EIN_KIND(file)
    EIN_KIND(memory)
    EIN_KIND(device)
    EIN_KIND(placement)
    EIN_KIND(peer)
#undef EIN_KIND
  }
  return "value";
}

void set_error(const Error& error) {
  try {
    nb::object type = nb::borrow(error_type());
    nb::object made = type(nb::str(error.what()));
    nb::list spans;
    for (const SourceSpan& span : error.spans()) spans.append(nb::make_tuple(span.begin, span.end));
    const std::string_view kind = name_of(error.kind());
    made.attr("kind") = nb::str(kind.data(), kind.size());
    made.attr("spans") = spans;
    PyErr_SetObject(error_type(), made.ptr());
  } catch (nb::python_error& other) {
    other.restore();
  }
}

Error gradient_error() {
  return Error(
      ErrorKind::value,
      "an operand is a tensor of PyTorch that wants a gradient, which this call would lose\n"
      "  help: give x.detach(), or call within torch.no_grad()");
}

}  // namespace

PyObject* set_python_error() {
  try {
    throw;
  } catch (const PythonError&) {
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const GradientWanted&) {
    set_error(gradient_error());
  } catch (const Error& error) {
    set_error(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

void add_error(nb::module_& m) {
  error_type() = PyErr_NewExceptionWithDoc(
      "ein.Error",
      "What is wrong with a call: the text names axes and sizes, and has carets under the "
      "pattern.\n\n"
      "kind: what went wrong, as a word: syntax, pattern, arity, rank, size, dtype ...\n"
      "spans: the places in the pattern, as (begin, end) in bytes",
      PyExc_ValueError, nullptr);
  if (error_type() == nullptr) throw nb::python_error();
  m.attr("Error") = nb::borrow(error_type());
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const PythonError&) {
    } catch (const GradientWanted&) {
      set_error(gradient_error());
    } catch (const Error& error) {
      set_error(error);
    }
  });
}

}  // namespace ein::python

NB_MODULE(_ein, m) {
  try {
    ein::python::import_numpy();
  } catch (const ein::python::PythonError&) {
    throw nb::python_error();
  }
  ein::python::add_error(m);
  ein::python::add_tensor(m);
  ein::python::add_calls(m);
  ein::python::add_elementwise(m);
  ein::python::add_cost(m);
  ein::python::add_recipe(m);
  ein::python::add_account(m);
  ein::python::add_functions(m);
  ein::python::add_files(m);
  ein::python::add_optim(m);
  ein::python::add_nn(m);
  m.attr("__version__") = std::to_string(EIN_VERSION_MAJOR) + "." +
                          std::to_string(EIN_VERSION_MINOR) + "." +
                          std::to_string(EIN_VERSION_PATCH);
}
