// Functions whose results are rounded to 16 bits.
#pragma once

#include <ein/graph.hpp>

namespace ein {

/// Whether a function has one.
bool has_short_form(ScalarOp op);

/// Marks the functions that may take their short form (ScalarStep::short_form): those whose
/// argument is bf16 or f16, and whose result is rounded to bf16 or f16 by all that read it, at once
/// or after multiplications, which keep a relative error as it is. To be called before maps are
/// fused, so that what is computed does not depend on that.
Graph with_short_forms(Graph graph);

}  // namespace ein
