// The parts of the module, each of which adds its names.
#pragma once

#include <nanobind/nanobind.h>

namespace ein::python {

void add_error(nanobind::module_& m);
void add_tensor(nanobind::module_& m);
void add_calls(nanobind::module_& m);
void add_elementwise(nanobind::module_& m);
void add_cost(nanobind::module_& m);
void add_recipe(nanobind::module_& m);
void add_functions(nanobind::module_& m);
void add_files(nanobind::module_& m);
void add_account(nanobind::module_& m);
void add_optim(nanobind::module_& m);
void add_nn(nanobind::module_& m);

}  // namespace ein::python
