// What passes share that take a graph to a graph.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <ein/count.hpp>
#include <ein/graph.hpp>

namespace ein {

/// Whether each value is an input of an output or an assignment, through any number of operations.
std::vector<char> live_values(const Graph& graph);

/// Gives `to` the outputs and assignments of `from`, whose values are `moved` there.
void move_results(const Graph& from, Graph& to, const std::vector<ValueId>& moved);

/// The graph without the operations that `live` lacks; what is live must need none of them.
Graph keep_values(const Graph& graph, const std::vector<char>& live);

/// The graph without the operations that no output or assignment needs, but with all inputs:
/// callers count them.
Graph without_dead_values(const Graph& graph);

/// Whether `op` writes one axis per dimension, so that a reader's dimensions can stand for the
/// axes.
bool writes_plainly(const Op& op);

/// The points of the space that `op` goes over.
Count points(const Op& op);

/// Whether an expression in type `compute` can round a value to what `dtype` would have stored.
bool can_round(DType compute, DType dtype);

/// The value of `expr`, in type `compute`, as `dtype` would have stored it.
ScalarExpr rounded(ScalarExpr expr, DType compute, DType dtype);

/// The expression with each of its steps once, its inputs numbered as `number` says.
ScalarExpr with_steps_once(const ScalarExpr& expr, const std::function<int(int input)>& number);

/// Whether `reader`, which computes in `compute`, can compute `map` where it reads it: with the
/// same numbers once they are rounded, and no element more often than `map` does.
bool can_compute(const Op& map, const Op& reader, DType compute);

/// Where each axis of `op`, which writes plainly, lies for a reader of its value.
std::vector<DimIndex> axis_values(const Op& op, const Access& read);

/// The expression with its axis indices those of a reader, given where each axis lies; none where
/// an index would be more than another axis's.
std::optional<ScalarExpr> with_indices_of(ScalarExpr expr, const std::vector<DimIndex>& axis_value);

/// An access in terms of other axes, given where each of its own axes lies.
Access composed(const Access& access, const std::vector<DimIndex>& axis_value);

/// A value, and where it is read.
struct Read {
  ValueId value = 0;
  Access access{};
};
std::vector<Read> reads_of(const Op& op);

/// An expression, and what its inputs are.
struct Computed {
  ScalarExpr expr;
  std::vector<Read> reads;
};
/// The value of a read, as it is.
Computed as_read(Read read);
/// What a map that writes plainly computes for a reader of its value; none where with_indices_of
/// has none.
std::optional<Computed> computed_at(const Op& map, const Access& read);
/// The expression with what these compute in place of its inputs.
Computed substituted(const ScalarExpr& expr, const std::vector<Computed>& inputs);

}  // namespace ein
