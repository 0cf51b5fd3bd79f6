// A function of Python as one of tensors, which ein traces or differentiates.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <span>
#include <vector>

#include <ein/tensor.hpp>
#include "exchange.hpp"

namespace ein::python {

/// How a function of Python gave its results: they are given back so.
struct ResultForm {
  enum class Kind { nothing, one, tuple, list } kind = Kind::one;
  std::size_t count = 1;
  friend bool operator==(const ResultForm&, const ResultForm&) = default;
};

/// Calls `function` with ein.Tensors; takes the GIL. What it raises is thrown as nanobind's.
std::vector<Tensor> call_python(nanobind::handle function, std::span<const Tensor> arguments,
                                ResultForm* form = nullptr);
/// One tensor is wanted; an Error that names `who` else.
Tensor call_python_for_one(const char* who, nanobind::handle function,
                           std::span<const Tensor> arguments);

/// The arguments of a call from Python as tensors, and what its results are to be.
struct GivenArrays {
  std::vector<PyObject*> objects;  // borrowed
  std::vector<Tensor> tensors;
  Like like{};

  explicit GivenArrays(nanobind::args given);
  nanobind::object results(const std::vector<Tensor>& made, ResultForm form) const;
  nanobind::object result(const Tensor& made) const;
};

}  // namespace ein::python
