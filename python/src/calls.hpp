// The arguments of a call with a pattern, as Python gives them.
#pragma once

#include <Python.h>

#include <memory>
#include <string_view>
#include <vector>

#include <ein/named.hpp>
#include <ein/ops.hpp>
#include "exchange.hpp"

namespace ein::engine {
class Plan;
}

namespace ein::python {

/// Operands, the pattern behind them, and what follows it or has a name.
struct Arguments {
  Operation op;
  std::vector<Tensor> operands{};
  std::vector<PyObject*> objects{};  // borrowed, of each operand
  Like like{};
  bool is_list = false;  // operands were given as a list
  std::string_view pattern{};
  PyObject* function = nullptr;  // borrowed, of map
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
  /// Whether a call of so few elements is done sooner than the GIL is handed over and back.
  bool is_small() const;
  /// What run() runs where nothing is traced.
  std::shared_ptr<const engine::Plan> plan() const;

 private:
  /// Of a function of either kind of call.
  template <class F>
  auto with_call(const F& function) const;
  void add_operand(PyObject* object);
  void take_reduction(PyObject* object);
  /// What stands behind the pattern, with the names of the last ones.
  void take_others(PyObject* const* given, std::size_t count, PyObject* names);
};

}  // namespace ein::python
