// Costs as Python has them.
#pragma once

#include <nanobind/nanobind.h>

#include <ein/cost.hpp>

namespace ein::python {

/// All digits, as an int.
nanobind::object number(Count count);
/// Of numbers, by name.
nanobind::dict costs(const Cost& cost);

}  // namespace ein::python
