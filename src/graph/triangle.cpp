// Triangles and diagonals of matrices.
#include <algorithm>
#include <utility>

#include "graph/named.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

int axis_of(const Place& place, std::size_t dim) { return place.access[dim].terms[0].axis; }

/// The row and the column at which the diagonal with column - row = offset begins.
std::pair<Size, Size> beginning(Size offset) {
  if (offset >= 0) return {0, offset};
  return {ask_equal(offset, INT64_MIN) ? Size(INT64_MAX) : -offset, 0};
}

}  // namespace

Graph build_triangle(NamedBuild& b) {
  const Place full = b.full();
  const std::vector<std::size_t> dims = b.marked_dims();
  const detail::NamedOptions& options = b.call().named;
  const ScalarOp compare = b.call().op == Operation::triu ? ScalarOp::ge : ScalarOp::le;
  const Ex distance = Ex::index(axis_of(full, dims[1])) - Ex::index(axis_of(full, dims[0]));
  const Ex kept = Ex::apply(compare, distance, Ex::size(b.number()));
  const Ex value = where(kept, Ex::input(0), element(b, options.otherwise, b.dtype()));
  // Distances may be below 0: u64, too, is computed in i64, as a choice of bits.
  DType compute = is_integral(b.dtype()) ? DType::i64 : compute_type(b.dtype());
  // Positions beyond 2^24 are not exact in f32.
  const bool is_small = full.shape[dims[0]] < (1 << 24) && full.shape[dims[1]] < (1 << 24);
  if (compute == DType::f32 && !is_small) compute = DType::f64;
  return b.finish({b.map({b.operand(0)}, value, full, b.dtype(), compute)});
}

Graph build_diagonal(NamedBuild& b) {
  const std::vector<std::size_t> dims = b.marked_dims();
  const auto [first_row, first_column] = beginning(b.number());
  Place place = b.full();
  const Size rows = place.shape[dims[0]] - first_row, columns = place.shape[dims[1]] - first_column;
  const Size count = std::max<Size>(std::min(rows, columns), 0);
  const int axis = axis_of(place, dims[0]);
  NamedValue x = b.operand(0);
  const bool is_empty = ask_equal(count, 0);
  x.access[dims[0]] = {is_empty ? Size(0) : first_row, {{axis, 1}}};
  x.access[dims[1]] = {is_empty ? Size(0) : first_column, {{axis, 1}}};
  place.access.erase(place.access.begin() + static_cast<std::ptrdiff_t>(dims[1]));
  Shape shape;
  for (std::size_t d = 0; d < place.shape.rank(); ++d) {
    if (d != dims[1]) shape.push_back(d == dims[0] ? count : place.shape[d]);
  }
  std::vector<Axis> axes = b.solved().axes;
  axes[static_cast<std::size_t>(axis)].size = count;
  return b.finish({b.reindex(x, {place.access, shape}, axes)});
}

Graph build_from_diagonal(NamedBuild& b) {
  const std::size_t dim = b.marked_dims()[0];
  const auto [first_row, first_column] = beginning(b.number());
  const Place full = b.full();
  Size size;
  if (add_overflows(full.shape[dim], first_row + first_column, size))
    b.complain(ErrorKind::overflow, "the matrix has more than 2^63 - 1 rows",
               b.marks_of_brackets());
  Place place;
  for (std::size_t d = 0; d < full.shape.rank(); ++d) {
    place.access.push_back(full.access[d]);
    place.shape.push_back(d == dim ? size : full.shape[d]);
    if (d != dim) continue;
    place.access.back().offset = first_row;
    place.access.push_back({first_column, full.access[d].terms});
    place.shape.push_back(size);
  }
  return b.finish({b.add(op_of(OpKind::place, {b.operand(0)}, place, b.dtype()))});
}

}  // namespace ein
