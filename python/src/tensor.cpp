// ein.Tensor, and how one is made.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/complex.hpp>
#include <ein/create.hpp>
#include <ein/dlpack.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/parallel.hpp>
#include <ein/tensor.hpp>
#include "exchange.hpp"
#include "module.hpp"
#include "tensor/dlpack_abi.hpp"

namespace nb = nanobind;

namespace ein::python {
namespace {

using Sizes = std::vector<std::int64_t>;

Sizes sizes_of(nb::handle object) {
  Sizes sizes;
  if (PyIndex_Check(object.ptr())) {
    sizes.push_back(nb::cast<std::int64_t>(object));
  } else {
    for (nb::handle one : object) sizes.push_back(nb::cast<std::int64_t>(one));
  }
  return sizes;
}
Shape shape_of(nb::handle object) { return Shape(std::span<const std::int64_t>(sizes_of(object))); }

template <class List>
nb::tuple tuple_of(const List& list) {
  nb::list all;
  for (const Size size : list) all.append(static_cast<std::int64_t>(size));
  return nb::tuple(all);
}

DType dtype_or(nb::handle dtype, DType otherwise) {
  return dtype.is_none() ? otherwise : dtype_of_python(dtype.ptr());
}

Tensor tensor_from(nb::handle object) { return tensor_of(object.ptr()); }

Scalar scalar_from(nb::handle value) {
  if (PyBool_Check(value.ptr())) return Scalar(value.is(Py_True));
  if (PyIndex_Check(value.ptr())) return Scalar(nb::cast<std::int64_t>(value));
  return Scalar(nb::cast<double>(value));
}

Index index_of(nb::handle entry) {
  if (!PySlice_Check(entry.ptr())) return Index(nb::cast<std::int64_t>(entry));
  const auto bound = [&](const char* name, std::int64_t otherwise) {
    const nb::object value = entry.attr(name);
    return value.is_none() ? otherwise : nb::cast<std::int64_t>(value);
  };
  return Index(slice(bound("start", 0), bound("stop", INT64_MAX), bound("step", 1)));
}
std::vector<Index> indices_of(nb::handle entries) {
  std::vector<Index> indices;
  if (!PyTuple_Check(entries.ptr())) return {index_of(entries)};
  for (nb::handle entry : entries) indices.push_back(index_of(entry));
  return indices;
}

/// The only element as Python's own number.
nb::object item(const Tensor& x) {
  if (x.dtype() == DType::boolean) return nb::bool_(x.item<bool>());
  if (x.dtype() == DType::u64) return nb::int_(x.item<std::uint64_t>());
  if (is_integral(x.dtype())) return nb::int_(x.item<std::int64_t>());
  if (is_complex(x.dtype())) {
    return nb::steal(PyComplex_FromDoubles(real(x).item<double>(), imag(x).item<double>()));
  }
  return nb::float_(x.item<double>());
}

/// The capsule of a consumer that asked for DLPack up to `max_version`.
nb::object capsule_of(const Tensor& x, nb::handle max_version) {
  const bool is_versioned = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  PyObject* capsule = nullptr;
  if (is_versioned) {
    DlpackPointer managed(to_dlpack(x));
    capsule = PyCapsule_New(managed.get(), "dltensor_versioned", [](PyObject* self) {
      if (!PyCapsule_IsValid(self, "dltensor_versioned")) return;  // it was taken
      detail::drop_dlpack(
          static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(self, "dltensor_versioned")));
    });
    if (capsule != nullptr) managed.release();
  } else {
    std::unique_ptr<DLManagedTensor, detail::DropDlpack> managed(to_dlpack_unversioned(x));
    capsule = PyCapsule_New(managed.get(), "dltensor", [](PyObject* self) {
      if (!PyCapsule_IsValid(self, "dltensor")) return;
      detail::drop_dlpack(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(self, "dltensor")));
    });
    if (capsule != nullptr) managed.release();
  }
  if (capsule == nullptr) throw nb::python_error();
  return nb::steal(capsule);
}

/// `with ein.no_grad():`
class NoGradients {
 public:
  void enter() { guards_.push_back(std::make_shared<NoGrad>()); }
  void leave() { guards_.pop_back(); }

 private:
  std::vector<std::shared_ptr<NoGrad>> guards_;
};

void add_members(nb::class_<Tensor>& c) {
  c.def(
      "__init__", [](Tensor* self, nb::handle array) { new (self) Tensor(tensor_from(array)); },
      nb::arg("array"), "Shares the memory of a NumPy array, or of whatever has DLPack.");
  c.def_prop_ro("shape", [](const Tensor& x) { return tuple_of(x.shape()); });
  c.def_prop_ro(
      "strides", [](const Tensor& x) { return tuple_of(x.strides()); }, "In elements.");
  c.def_prop_ro("dtype", [](const Tensor& x) { return std::string(name(x.dtype())); });
  c.def_prop_ro("device", [](const Tensor& x) { return to_string(x.device()); });
  c.def_prop_ro("ndim", [](const Tensor& x) { return x.rank(); });
  c.def_prop_ro("size", [](const Tensor& x) { return static_cast<std::int64_t>(x.numel()); });
  c.def_prop_ro("nbytes", [](const Tensor& x) { return x.nbytes(); });
  c.def("item", &item, "The only element as a number.");
  c.def(
      "numpy", [](const Tensor& x) { return nb::steal(to_numpy(x.detach())); },
      "A NumPy array of the same memory.");
  c.def(
      "__array__",
      [](const Tensor& x, nb::handle dtype, nb::handle copy) {
        nb::object array = nb::steal(to_numpy(x.detach()));
        if (!dtype.is_none()) return array.attr("astype")(dtype);
        return !copy.is_none() && nb::cast<bool>(copy) ? array.attr("copy")() : array;
      },
      nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none());
  c.def(
      "__dlpack__",
      [](const Tensor& x, nb::handle, nb::handle max_version, nb::handle, nb::handle copy) {
        const bool copies = !copy.is_none() && nb::cast<bool>(copy);
        return capsule_of(copies ? x.clone() : x, max_version);
      },
      nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
      nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none());
  c.def("__dlpack_device__", [](const Tensor& x) {
    const Device device = x.device();
    return device == cpu ? nb::make_tuple(static_cast<int>(kDLCPU), 0)
                         : nb::make_tuple(static_cast<int>(kDLCUDA), device.index());
  });
  c.def(
      "to",
      [](const Tensor& x, nb::handle where) {
        if (nb::isinstance<nb::str>(where)) {
          const std::string text = nb::cast<std::string>(where);
          if (text == "cpu" || text.starts_with("cuda")) {
            const Device device = device_named(text);
            const WithoutGil without(true);
            return x.to(device);
          }
        }
        return x.to(dtype_of_python(where.ptr()));
      },
      nb::arg("dtype_or_device"));
  c.def("contiguous", &Tensor::contiguous);
  c.def("is_contiguous", &Tensor::is_contiguous);
  c.def("clone", &Tensor::clone);
  c.def(
      "reshape", [](const Tensor& x, nb::handle shape) { return x.reshape(shape_of(shape)); },
      nb::arg("shape"));
  c.def(
      "fill", [](const Tensor& x, nb::handle value) { x.fill(scalar_from(value)); },
      nb::arg("value"));
  c.def(
      "copy_from", [](const Tensor& x, nb::handle from) { x.copy_from(tensor_from(from)); },
      nb::arg("source"));
  c.def("__getitem__", [](const Tensor& x, nb::handle at) { return x.at(indices_of(at)); });
  c.def("__setitem__", [](const Tensor& x, nb::handle at, nb::handle value) {
    const Tensor part = x.at(indices_of(at));
    if (is_array(value.ptr()))
      part.copy_from(tensor_from(value));
    else
      part.fill(scalar_from(value));
  });
  c.def("__len__", [](const Tensor& x) {
    if (x.rank() == 0) throw Error(ErrorKind::rank, "a tensor without axes has no length");
    return static_cast<std::int64_t>(x.shape()[0]);
  });
  c.def("__bool__", [](const Tensor& x) { return x.item<double>() != 0; });
  c.def("__float__", [](const Tensor& x) { return x.item<double>(); });
  c.def("__int__", [](const Tensor& x) { return x.item<std::int64_t>(); });
  c.def("__repr__", [](const Tensor& x) {
    return "ein.Tensor(" + (x.storage() ? to_string(x) : x.shape().to_string()) + ", dtype='" +
           std::string(name(x.dtype())) + "')";
  });
  c.def_prop_rw(
      "requires_grad", [](const Tensor& x) { return x.requires_grad(); },
      [](const Tensor& x, bool wanted) { x.requires_grad(wanted); });
  c.def_prop_ro("grad", [](const Tensor& x) -> std::optional<Tensor> {
    if (!x.has_grad()) return std::nullopt;
    return x.grad();
  });
  c.def("zero_grad", &Tensor::zero_grad);
  c.def("detach", &Tensor::detach);
  c.def(
      "backward",
      [](const Tensor& x, nb::handle cotangent) {
        std::optional<Tensor> given;
        if (!cotangent.is_none()) given = tensor_from(cotangent);
        const WithoutGil without(true);
        if (given)
          x.backward(*given);
        else
          x.backward();
      },
      nb::arg("cotangent") = nb::none());
}

/// `x + y`, by the functions that elementwise.cpp binds.
void add_operators(nb::class_<Tensor>& c, const nb::module_& m) {
  c.def("__neg__", [](const Tensor& x) { return -x; });
  c.def("__invert__", [](const Tensor& x) { return bitwise_not(x); });
  struct Operator {
    const char* method;
    const char* function;
    bool is_reflected;
  };
  constexpr Operator operators[] = {
      {"__add__", "add", false},         {"__radd__", "add", true},
      {"__sub__", "sub", false},         {"__rsub__", "sub", true},
      {"__mul__", "mul", false},         {"__rmul__", "mul", true},
      {"__truediv__", "div", false},     {"__rtruediv__", "div", true},
      {"__pow__", "pow", false},         {"__rpow__", "pow", true},
      {"__mod__", "remainder", false},   {"__floordiv__", "floor_divide", false},
      {"__and__", "bitwise_and", false}, {"__or__", "bitwise_or", false},
      {"__xor__", "bitwise_xor", false}, {"__matmul__", "matmul", false},
      {"__lt__", "less", false},         {"__le__", "less_equal", false},
      {"__gt__", "greater", false},      {"__ge__", "greater_equal", false},
      {"__eq__", "equal", false},        {"__ne__", "not_equal", false},
  };
  const nb::handle module = m;
  for (const Operator& sign : operators) {
    const char* const function = sign.function;
    const bool is_reflected = sign.is_reflected;
    nb::cpp_function_def(
        [module, function, is_reflected](nb::handle a, nb::handle b) -> nb::object {
          return is_reflected ? module.attr(function)(b, a) : module.attr(function)(a, b);
        },
        nb::name(sign.method), nb::is_method(), nb::is_operator(), nb::scope(c));
  }
}

}  // namespace

Device device_named(const std::string& text) {
  if (text == "cpu") return cpu;
  if (text == "cuda") return cuda;
  if (text.starts_with("cuda:")) {
    try {
      return cuda(std::stoi(text.substr(5)));
    } catch (const std::logic_error&) {
    }
  }
  throw Error(ErrorKind::device,
              "there is no device '" + text + "'\n  help: 'cpu', 'cuda' or 'cuda:1'");
}

void add_tensor(nb::module_& m) {
  nb::class_<Tensor> c(m, "Tensor",
                       "A view of shared memory: a dtype, a shape, strides. Gradients flow through "
                       "what is computed from one whose requires_grad is set.");
  add_members(c);
  add_operators(c, m);
  const auto dtype = nb::arg("dtype") = "f32";
  const auto device = nb::arg("device") = "cpu";
  m.def(
      "empty",
      [](nb::handle shape, nb::handle dtype, const std::string& device) {
        return empty(shape_of(shape), dtype_or(dtype, DType::f32), device_named(device));
      },
      nb::arg("shape"), dtype, device, "Elements are not set.");
  m.def(
      "zeros",
      [](nb::handle shape, nb::handle dtype, const std::string& device) {
        return zeros(shape_of(shape), dtype_or(dtype, DType::f32), device_named(device));
      },
      nb::arg("shape"), dtype, device);
  m.def(
      "ones",
      [](nb::handle shape, nb::handle dtype, const std::string& device) {
        return ones(shape_of(shape), dtype_or(dtype, DType::f32), device_named(device));
      },
      nb::arg("shape"), dtype, device);
  m.def(
      "full",
      [](nb::handle shape, nb::handle value, nb::handle dtype, const std::string& device) {
        return full(shape_of(shape), scalar_from(value), dtype_or(dtype, DType::f32),
                    device_named(device));
      },
      nb::arg("shape"), nb::arg("value"), dtype, device);
  m.def(
      "arange",
      [](nb::handle start, nb::handle end, nb::handle step, const std::string& device) {
        if (end.is_none()) return arange(scalar_from(start), device_named(device));
        return arange(scalar_from(start), scalar_from(end), scalar_from(step),
                      device_named(device));
      },
      nb::arg("start"), nb::arg("end") = nb::none(), nb::arg("step") = 1, device,
      "start, start + step, ... below end; from 0 below `start` where there is no end.");
  m.def(
      "eye",
      [](std::int64_t n, nb::handle dtype, const std::string& device) {
        return eye(n, dtype_or(dtype, DType::f32), device_named(device));
      },
      nb::arg("n"), dtype, device, "The n × n identity matrix.");
  m.def(
      "rand",
      [](nb::handle shape, nb::handle dtype, const std::string& device) {
        return rand(shape_of(shape), dtype_or(dtype, DType::f32), device_named(device));
      },
      nb::arg("shape"), dtype, device, "Uniform in [0, 1).");
  m.def(
      "randn",
      [](nb::handle shape, nb::handle dtype, const std::string& device) {
        return randn(shape_of(shape), dtype_or(dtype, DType::f32), device_named(device));
      },
      nb::arg("shape"), dtype, device, "Normal, of mean 0 and variance 1.");
  m.def("manual_seed", &manual_seed, nb::arg("seed"), "Where random numbers begin.");
  m.def(
      "from_dlpack", [](nb::handle array) { return tensor_from(array); }, nb::arg("array"),
      "A tensor of an array's memory.");
  m.def(
      "set_num_threads", [](int threads) { set_num_threads(threads); }, nb::arg("threads"));
  m.def("num_threads", [] { return num_threads(); });
  nb::class_<NoGradients>(m, "no_grad", "`with ein.no_grad():` nothing is kept for gradients.")
      .def(nb::init<>())
      .def("__enter__", [](NoGradients& self) { self.enter(); })
      .def("__exit__", [](NoGradients& self, nb::args) { self.leave(); });
}

}  // namespace ein::python
