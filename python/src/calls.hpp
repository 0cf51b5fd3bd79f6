// The arguments of a call with a pattern, as Python gives them.
#pragma once

#include <Python.h>

#include <string_view>
#include <vector>

#include <ein/named.hpp>
#include <ein/ops.hpp>
#include "exchange.hpp"

namespace ein::python {

/// Operands, the pattern behind them, and what follows it or has a name.
struct Arguments {
  Operation op;
  std::vector<Tensor> operands{};
  std::vector<PyObject*> objects{};  // borrowed, of each operand
  Like like{};
  bool is_list = false;  // operands were given as a list
  std::string_view pattern{};
  std::vector<AxisSize> sizes{};
  bool has_reduction = false;
  Reduction reduction = Reduction::sum;
  detail::NamedOptions named{};
  std::vector<Size> numbers{};
  std::vector<double> reals{};
  std::vector<Shape> packed_shapes{};
  bool sums_alone = false;
  std::int64_t max_intermediate = 0;

  /// `count` arguments without a name, behind them those with one.
  Arguments(Operation op, PyObject* const* given, std::size_t count, PyObject* names);
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  /// With the GIL released where there is much to compute.
  std::vector<Tensor> run() const;

 private:
  void add_operand(PyObject* object);
  void take_reduction(PyObject* object);
};

}  // namespace ein::python
