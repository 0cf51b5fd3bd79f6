// Graph: the one description of an operation, read by cost, interpreter and backends alike.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ein/detail/combines.hpp>
#include <ein/detail/fields.hpp>
#include <ein/detail/matrix_function.hpp>
#include <ein/dtype.hpp>
#include <ein/placement.hpp>
#include <ein/scalar_expr.hpp>
#include <ein/shape.hpp>

namespace ein {

// What a graph is made of is equal where it is equal for all lengths.

/// An elementary axis: a composite one such as (h d) is split before it comes here.
struct Axis {
  std::string name;
  Size size = 0;
  EIN_FIELDS(Axis, name, size)
  friend bool operator==(const Axis& a, const Axis& b);
};

/// The position along one dimension as an affine function of the axes: offset + Σ coefficient ·
/// index. A plain axis is one term, the composite (h d) is D·h + d, a diagonal uses one axis in two
/// dimensions, a broadcast dimension has no term, a slice has offset and step, a flip goes by -1.
struct DimIndex {
  struct Term {
    int axis = 0;
    Size coefficient = 1;
    EIN_FIELDS(Term, axis, coefficient)
    friend bool operator==(const Term& a, const Term& b);
  };
  Size offset = 0;
  std::vector<Term> terms;
  EIN_FIELDS(DimIndex, offset, terms)
  friend bool operator==(const DimIndex& a, const DimIndex& b);
};

/// Where an operation reads or writes a value: one DimIndex per dimension.
using Access = std::vector<DimIndex>;

enum class OpKind : std::uint8_t {
  input,  ///< a tensor from outside
  map,  ///< a scalar expression of its inputs at each index tuple; without inputs, a constant or a
        ///< random array
  contract,  ///< the product of its inputs, summed over the axes that the result lacks
  reduce,    ///< one input, combined over the axes that the result lacks
             ///< Of both, a tuple that reads beside an input, or writes beside the result, is left
             ///< out; where a factor is infinite or NaN, it may be NaN times 0. Sums may write an
             ///< element several times, which adds up, or never: it is 0.
  reindex,   ///< one input, rearranged: rearrange, repeat, diagonal, slice
  concat,    ///< its inputs joined along one dimension
  place,    ///< one input at some places of the result, each written at most once; zeros elsewhere,
            ///< or the second input, which has the result's shape; with a third input, a position,
            ///< these places lie that much further on along dimension `dim`
  gather,   ///< x and positions: the elements of x at positions[...] along dimension `dim` of x; or
            ///< x and one position: a slice of x that begins there
  scatter,  ///< values and positions: each value combined into what lies at positions[...] along
            ///< dimension `dim`, nothing at first
  scan,     ///< one input, combined cumulatively along `axis`; with a second one, factors, a linear
            ///< recurrence: each result is its factor times the result before it, plus the input
  argsort,  ///< one input: the i64 positions along `axis` that put it in order; equal elements keep
            ///< theirs
  matrix,   ///< `function` of the matrices that `roles` says the first input has
  reshard,  ///< one input, as it is; on a mesh it lies as `from` says, and the result as `to` says
  collective,  ///< of one process's graph: its input and those of the other processes of a group
};

/// What an operation of a compiled function is part of.
enum class Phase : std::uint8_t {
  forward,
  recompute,  ///< what ein::checkpoint computes again
  backward,
  update,  ///< of parameters and other state: what gradients go into, and what only assignments
           ///< read
};

using ValueId = int;

/// What is said of an operation beside its value, and copied as one to what passes make of it.
struct Marks {
  bool detached = false;    // a constant to differentiation: no output depends on it, as on the
                            // maximum in a softmax
  bool stationary = false;  // a constant to the first derivative alone, as the mean in a variance
  bool picks_classes = false;  // gather: the positions are targets of a loss; for errors alone
  int again = 0;  // equal operations that differ in this are never taken for one: recomputation
  Phase phase = Phase::forward;  // of a traced function; says nothing of the value
  EIN_FIELDS(Marks, detached, stationary, picks_classes, again, phase)
};

/// One operation and its result. Its index space is the product of `axes`.
struct Op {
  OpKind kind = OpKind::input;
  DType dtype = DType::f32;  // of the result
  Shape shape{};             // of the result
  std::vector<ValueId> inputs{};
  std::vector<Axis> axes{};
  std::vector<Access> reads{};  // one per input
  Access write{};              // covers each element of the result exactly once (per reduced tuple)
  ScalarExpr expr{};           // map
  DType compute = DType::f32;  // map: the type it computes in, f64, f32, i64 or u64
  Combine combine = Combine::sum;  // reduce, scan, scatter, collective
  int dim = 0;   // concat, place; gather, scatter: that dimension has no terms but those of a slice
  int axis = 0;  // scan, argsort: one of `axes`
  MatrixFunction function = MatrixFunction::inverse;  // matrix
  std::vector<MatrixAxis> roles{};                    // matrix: one per axis; else none
  Placement from{}, to{};                             // reshard
  Collective collective = Collective::all_reduce;     // collective; its dimensions that are of the
                                                      // processes come first
  std::uint32_t mesh_axes =
      0;                   // collective: bit m is set if its processes differ along mesh axis m
  bool reverse = false;    // scan: from the end; argsort: the greatest first
  std::int64_t parts = 1;  // gather, scatter: equal parts of the whole dimension, of which this is
                           // one; for errors alone
  Marks marks{};
  EIN_FIELDS(Op, kind, dtype, shape, inputs, axes, reads, write, expr, compute, combine, dim, axis,
             function, roles, from, to, collective, mesh_axes, reverse, parts, marks)
};

/// An effect: when the graph has run, the tensor behind input `target` holds `value`.
struct Assignment {
  ValueId target = 0;
  ValueId value = 0;
  EIN_FIELDS(Assignment, target, value)
};

/// Operations in an order in which each comes after its inputs; a value is named by its operation's
/// place.
struct Graph {
  std::vector<Op> ops;
  std::vector<ValueId> outputs;
  std::vector<Assignment> assignments{};
  const Op& op(ValueId id) const& { return ops[static_cast<std::size_t>(id)]; }
  Op op(ValueId id) && { return std::move(ops[static_cast<std::size_t>(id)]); }
  EIN_FIELDS(Graph, ops, outputs, assignments)
};

std::string_view name(OpKind kind);

/// Whether the access moves along `axis`.
bool uses(const Access& access, int axis);

/// Whether `axis` appears in the result of `op`; an axis that does not is reduced.
inline bool is_kept(const Op& op, int axis) { return uses(op.write, axis); }
/// Whether what is written so lacks an axis.
bool reduces(const Access& write, const std::vector<Axis>& axes);

/// One operation as text, without its own name: `reduce sum %3  "b s -> b"  : f32 (2,)`.
std::string to_string(const Op& op);
/// The graph as text, one operation a line, in the notation of patterns.
std::string to_string(const Graph& graph);

/// Checks every invariant above; throws std::logic_error naming the operation that breaks one.
void verify(const Graph& graph);

}  // namespace ein
