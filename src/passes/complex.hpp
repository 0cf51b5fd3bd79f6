// Complex numbers as pairs of real ones.
#pragma once

#include <ein/graph.hpp>
#include "passes/contraction_order.hpp"

namespace ein {

/// The graph with a value of complex dtype as one of f32 or f64 that has one dimension more, the
/// last, of size 2: the real parts and the imaginary ones. So inputs and outputs lie in memory as
/// they did. What passes, derivatives and backends see are real numbers.
///
/// A product of complex matrices becomes one of real ones, c[m (n r)] = Σ a[m (k q)] · e[(k q) (n
/// r)] with e the 2 × 2 matrices of the elements of one operand: 8 operations for a multiply-add.
/// Where one operand is much smaller, it may be y[(p m) (n q)] = Σ a[(p m) k] · b[k (n q)] instead,
/// whose parts are added then. Contractions of several operands are ordered first.
///
/// An Error of kind `dtype`, which begins with `call`, where complex numbers lack an operation:
/// they have no order, so no maximum.
Graph without_complex(const Graph& graph, const std::string& call,
                      const OrderOptions& options = {});

/// Whether a value of the graph is complex.
bool has_complex(const Graph& graph);

}  // namespace ein
