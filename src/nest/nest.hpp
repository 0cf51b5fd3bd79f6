// LoopNest: what a backend runs. Loops over elementary axes, affine accesses, one scalar
// expression.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <ein/graph.hpp>

namespace ein {

/// Whether they are equal for all lengths.
bool always_equal(const std::vector<Size>& a, const std::vector<Size>& b);

/// For each point of the kept axes: evaluates `body` at each point of the reduced axes, combines
/// the values (there is just one where nothing is reduced), applies `epilogue` and stores the
/// result. What only the epilogue reads does not move along the reduced axes.
///
/// Other nests, whose body is their input 0:
/// - An indirect input 0 is gathered: nothing is reduced.
/// - An indirect output is scattered to: it begins as the combination of nothing at all its
///   positions, and the value at each point is combined into it where the positions say. The
///   reduced axes are those along which the output moves by its positions alone.
/// - An indirect output without a combine is written to: input 0 replaces what lies from one
///   position on, and the rest stays as it is. Nothing is reduced.
/// - Along its one ordered axis a nest may scan or argsort (see Along).
/// - A matrix function is computed of each matrix of input 0, along two ordered axes; a third is
///   that of packed results. The output moves along some of them.
struct LoopNest {
  struct NestAxis {
    std::string name;
    Size size = 0;
    bool reduced = false;
    bool ordered = false;                 // scanned or sorted along, or of matrices; kept
    MatrixAxis role = MatrixAxis::batch;  // in a function of matrices
    EIN_FIELDS(NestAxis, name, size, reduced, ordered, role)
  };
  /// Moves an operand by `stride` elements for each unit of the value of input `positions`, an i64
  /// or i32 in [0, size - length]; other values are an Error of kind `value`.
  struct Indirection {
    int positions = -1;  // none
    Size stride = 0;
    Size size = 0;             // of the axis
    Size length = 1;           // of the slice of it that begins at a position
    std::int64_t parts = 1;    // of the user's axis, of which this is one; for errors alone
    bool is_unsigned = false;  // the positions were u64; for errors alone
    Size count() const { return size - length + 1; }  // of positions that there may be
    EIN_FIELDS(Indirection, positions, stride, size, length, parts, is_unsigned)
    friend bool operator==(const Indirection& a, const Indirection& b);
  };
  /// An operand's elements lie at offset + Σ strides[a] · index_a, in elements of its buffer, and
  /// where the indirection adds.
  struct Operand {
    int buffer = 0;
    DType dtype = DType::f32;
    Size offset = 0;
    std::vector<Size> strides{};  // one per axis
    Indirection indirection{};
    bool is_indirect() const { return indirection.positions >= 0; }
    EIN_FIELDS(Operand, buffer, dtype, offset, strides, indirection)
    friend bool operator==(const Operand& a, const Operand& b);
  };
  /// What happens along the ordered axis.
  enum class Along : std::uint8_t {
    nothing,
    scan,       ///< each result combines the values up to its own; with an input 1, factors, each
                ///< is the factor times the result before it, plus input 0
    argsort,    ///< each result is the place, along the axis, of the value that comes there in
                ///< ascending order; equal values keep their order, and NaN counts as the greatest
    matrix,     ///< results are `function` of the matrices
    processes,  ///< `collective` with the processes that differ along `mesh_axes`; where operand or
                ///< result has a dimension of processes, that is axis 0
  };
  std::vector<NestAxis> axes;
  std::vector<Operand> inputs;
  Operand output;                  // strides of reduced axes are 0
  ScalarExpr body;                 // of the inputs
  std::optional<Combine> combine;  // none: no axis is reduced or scanned
  ScalarExpr epilogue;  // of the combined value, input 0, and of the inputs from 1 on; empty for
                        // the value itself
  DType compute =
      DType::f32;  // f64, f32, i64 or u64: the type of every step and of the combination
  Along along = Along::nothing;
  bool reverse = false;  // scan: from the end; argsort: in descending order
  MatrixFunction function = MatrixFunction::inverse;  // matrix
  Collective collective = Collective::all_reduce;     // processes
  std::uint32_t mesh_axes = 0;                        // processes: a bit for each

  Phase phase = Phase::forward;  // of a compiled function; says nothing of what happens
  OpKind kind = OpKind::map;  // of the graph's operation that it computes, whose work is counted as
                              // its; says nothing of what happens
  bool picks_classes = false;  // gathers at the targets of a loss; for errors alone
  bool joins = false;  // combines parts of one reduction, whose elements are counted with the parts

  bool reduces() const;        // whether an axis is reduced
  bool is_copy() const;        // the body is its one input, unrounded, and nothing is combined
  bool sums_products() const;  // the body is the product of inputs 0 and 1, combined by sum; others
                               // are the epilogue's
  bool is_matrix() const { return along == Along::matrix; }
  bool is_collective() const { return along == Along::processes; }
  bool is_gather() const { return !inputs.empty() && inputs[0].is_indirect(); }
  bool is_scatter() const { return output.is_indirect(); }
  bool writes_at_position() const { return is_scatter() && !combine; }

  /// Input `o`, or behind them the output.
  const Operand& operand(std::size_t o) const { return o < inputs.size() ? inputs[o] : output; }
  Operand& operand(std::size_t o) { return o < inputs.size() ? inputs[o] : output; }

  EIN_FIELDS(LoopNest, axes, inputs, output, body, combine, epilogue, compute, along, reverse,
             function, collective, mesh_axes, phase, kind, picks_classes, joins)
};

/// What is wrong with a position: "position 7 is outside an axis of size 5".
std::string outside_axis(std::int64_t position, std::int64_t length, std::int64_t size);
/// The same of the user's axis and positions.
std::string outside_axis(std::int64_t position, const LoopNest::Indirection& axis);
/// A position as the user wrote it.
std::string position_text(std::int64_t position, const LoopNest::Indirection& axis);

/// Whether an expression, or one of a nest's, asks for the index of an axis: of any, or of this.
bool asks_index(const ScalarExpr& expr);
bool asks_index(const ScalarExpr& expr, std::size_t axis);
bool asks_index(const LoopNest& nest, std::size_t axis);

/// The inputs that an expression reads, in order.
std::vector<std::size_t> inputs_of(const ScalarExpr& expr);

/// Where random streams that are relative to a run begin.
struct RandomOrigin {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
};

/// Merges axes that every operand walks as one, and drops axes of size 1; axes whose index an
/// expression uses stay.
void simplify(LoopNest& nest);

/// Makes `axis` an outer axis and, behind it, an inner one of size `inner`, which divides its size;
/// its index must not be asked for.
void split(LoopNest& nest, std::size_t axis, Size inner);
void split(LoopNest::Operand& operand, std::size_t axis, Size inner);

/// The nest whose axis a is axis order[a] of this one.
LoopNest in_order(const LoopNest& nest, const std::vector<std::size_t>& order);

/// Gives f each axis whose index an expression of the nest asks for; the index of what it returns
/// is asked for afterwards.
template <class F>
void rename_indices(LoopNest& nest, const F& f) {
  for (ScalarExpr* expr : {&nest.body, &nest.epilogue}) {
    for (ScalarStep& step : expr->steps) {
      if (step.op == ScalarOp::index)
        step.which = static_cast<int>(f(static_cast<std::size_t>(step.which)));
    }
  }
}

struct Attention;  // nest/attention.hpp

/// How the nests of a group run together.
namespace grouped {

/// Nest number i on one of `count` equal pieces of its axis axes[i] at a time, or on `at_once`
/// of them, the last time maybe on fewer. Without axes each nest is run whole.
struct Blocks {
  Size count = 1;
  std::vector<std::size_t> axes{};
  Size at_once = 1;
  EIN_FIELDS(Blocks, count, axes, at_once)
};

/// Row by row: all nests have the same first `axes` axes, which none reduces, and either no
/// others or the same others, all reduced or all kept. Of what the group writes they read only
/// values of the same row, at the point where they are written; and they read nothing that one
/// of them overwrites.
struct Rows {
  std::size_t axes = 0;
  EIN_FIELDS(Rows, axes)
};

/// Nest i + each does what nest i does, to other buffers, and the two are independent.
struct Repeated {
  std::size_t each = 1;
  EIN_FIELDS(Repeated, each)
};

}  // namespace grouped

/// A compiled graph: nests in order, over numbered buffers.
struct Program {
  /// Buffer i is input i for the first `input_count`; the others are allocated for a run.
  struct Buffer {
    Size elements = 0;
    DType dtype = DType::f32;
    bool is_local =
        false;  // only within the blocks of one group: no memory is wanted for all of it at once
    int memory = -1;  // the buffer whose memory it shares, if any
    Size bytes() const { return elements * size_of(dtype); }
    EIN_FIELDS(Buffer, elements, dtype, is_local, memory)
  };
  /// Nests [first, first + count) that run together in one of four forms.
  struct Group {
    using Blocks = grouped::Blocks;
    using Rows = grouped::Rows;
    using Repeated = grouped::Repeated;
    /// As attention, or its gradients, which is never null.
    using AsAttention = std::shared_ptr<const Attention>;

    std::size_t first = 0, count = 1;
    std::variant<Blocks, Rows, Repeated, AsAttention> form{};

    /// The form, if it is that; else none.
    const Blocks* blocks() const { return std::get_if<Blocks>(&form); }
    const Rows* rows() const { return std::get_if<Rows>(&form); }
    const Repeated* repeated() const { return std::get_if<Repeated>(&form); }
    const Attention* attention() const {
      const auto* of = std::get_if<AsAttention>(&form);
      return of ? of->get() : nullptr;
    }
    EIN_FIELDS(Group, first, count, form)
  };
  /// A result is a view of a buffer, maybe of an input's.
  struct Result {
    int buffer = 0;
    DType dtype = DType::f32;
    Shape shape;
    Strides strides;
    Size offset = 0;
    /// Along an axis for each dimension.
    LoopNest::Operand operand() const {
      return {buffer, dtype, offset, {strides.begin(), strides.end()}};
    }
    EIN_FIELDS(Result, buffer, dtype, shape, strides, offset)
  };
  std::size_t input_count = 0;
  std::vector<Buffer> buffers;
  std::vector<LoopNest> nests;
  std::vector<Result> results;
  std::vector<Group> groups{};  // of all nests, in order
  EIN_FIELDS(Program, input_count, buffers, nests, results, groups)
};

/// The buffers that hold the results, which passes must keep.
std::vector<int> result_buffers(const Program& program);

std::string to_string(const LoopNest& nest);
std::string to_string(const Program& program);

/// Throws a std::logic_error where a program is none: operands outside their buffers, expressions
/// of inputs that there are not, values that nothing has written, groups that are not those of all
/// nests in order.
void verify(const Program& program);

}  // namespace ein
