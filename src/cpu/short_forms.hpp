// The short forms of functions, for results that are rounded to 16 bits: which steps take them is
// decided in the graph (src/passes/short_forms.hpp).
#pragma once

#include <stdexcept>

#include <ein/scalar_expr.hpp>
#include "cpu/functions.hpp"

namespace ein::host {

/// f(the short form of `op`), which takes and gives a float or an Emitted<float>.
template <class F>
auto with_short_form(ScalarOp op, const F& f) {
  switch (op) {
#define EIN_SHORT_FORM(name) \
  case ScalarOp::name:       \
    return f([](const auto& x) { return functions::name##_of_16_bits(x); });
#include <ein/detail/scalar_functions.hpp>
    default:
      throw std::logic_error("a function without a short form");
  }
}

}  // namespace ein::host
