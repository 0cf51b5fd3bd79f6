// Pieces that graphs are built of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <ein/graph.hpp>

namespace ein {

/// Appends an operation; its value.
ValueId append(Graph& graph, Op op);

/// An axis for each dimension of `shape`: i0, i1, ...
std::vector<Axis> axes_of(const Shape& shape);

/// A dimension for each of these axes, or for `rank` axes from number `first` on.
Access plain_access(std::span<const int> axes);
Access plain_access(std::size_t rank, std::size_t first = 0);

/// Axes [first, first + count) as one dimension.
DimIndex joined_dim(const std::vector<Axis>& axes, std::size_t first, std::size_t count);

/// The shape of a value whose dimensions lie along `axes` so.
Shape shape_of(const Access& access, const std::vector<Axis>& axes);

/// The size of a dimension that is a mixed-radix number of its axes, the last of them the fastest;
/// none of another.
std::optional<Size> extent_of(const DimIndex& dim, const std::vector<Axis>& axes);

/// A value in another dtype.
ValueId converted(Graph& graph, ValueId value, DType to);

/// A value all of whose elements are `element`.
ValueId filled(Graph& graph, const Shape& shape, DType dtype, const Ex& element);

/// The combination of no elements of `dtype`.
Ex nothing_of(Combine combine, DType dtype);

/// The number of points that axes of these sizes have, as a constant.
Ex points_of(std::span<const Size> sizes);

/// A value of a graph, and where axes lie in it.
struct NamedValue {
  ValueId id = 0;
  Access access{};
};

/// The dimensions of a value that is to be computed.
struct Place {
  Access access{};
  Shape shape{};
};

/// An operation on these values. Its axes, and what its kind wants besides, are left to be said.
Op op_of(OpKind kind, const std::vector<NamedValue>& inputs, const Place& place, DType dtype);

/// An operation with an axis for each dimension of its result.
Op plain_op(OpKind kind, DType dtype, const Shape& shape);

/// Whether an access goes from the end of a dimension to its beginning along an axis.
inline bool goes_backwards(const DimIndex::Term& term) { return term.coefficient < 0; }
bool goes_backwards(const Access& access);

/// How many elements of a dimension there are up to the last that an access meets.
Size length_of(const DimIndex& dim, const std::vector<Axis>& axes);

/// Whether `op` is a gather of a slice, or a place, whose position along dimension `dim` is the
/// last input.
bool is_at_position(const Op& op);

// Of a matrix function: the sizes of its matrices, and of the packed parts of its result.
Size rows_of(const Op& op);
Size columns_of(const Op& op);
Size packed_size(MatrixFunction function, Size rows, Size columns);

/// Whether an access meets each element of a value of `shape` exactly once.
bool covers(const Access& access, const Shape& shape, const std::vector<Axis>& axes);

/// The least and the greatest position that an access meets along a dimension; of no points, less
/// than nothing.
struct Range {
  Size first = 0, last = -1;
};
Range range_of(const DimIndex& dim, const std::vector<Axis>& axes);

/// The different positions that an access meets along a dimension, in order; none where their
/// points are more than `most`, or lengths decide.
std::optional<std::vector<std::int64_t>> positions_of(const DimIndex& dim,
                                                      const std::vector<Axis>& axes,
                                                      std::int64_t most);

/// Whether each dimension is an axis of its own, as long as it for all lengths. That asks nothing.
bool is_plain(const Access& access, const Shape& shape, const std::vector<Axis>& axes);

/// Whether an access meets elements of a value of `shape` alone.
bool stays_inside(const Access& access, const Shape& shape, const std::vector<Axis>& axes);

/// Whether an access meets each element at most once: the indices of all axes follow from it.
bool meets_once(const Access& access, const std::vector<Axis>& axes);

/// Whether a contraction or reduction reads beside its operands, or writes an element of its result
/// several times, or not all of them.
bool has_windows(const Graph& graph, const Op& op);

/// A value as far as a reader goes, who then reads it at `read`: zeros are around it, or `fill`.
ValueId padded(Graph& graph, ValueId value, Access& read, const std::vector<Axis>& axes,
               const std::optional<Ex>& fill = {});

/// Moves, at each point of `axes`, an element of a value to its place in another: a reindex where
/// that is all of the result, else a place. Where that went backwards, its read does.
Op move_op(NamedValue from, const std::vector<Axis>& axes, Place to, DType dtype);

/// Moves values by one along an axis of `place`, in which they have a dimension for each of these
/// axes: towards its end, or back. Zeros come in. An axis has elements.
Op shift_op(const NamedValue& from, const Place& place, std::vector<Axis> axes, int axis, bool back,
            DType dtype);

/// Drops the axes that neither a read nor the write uses, and numbers the others anew.
void drop_unused_axes(Op& op);

}  // namespace ein
