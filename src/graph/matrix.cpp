// Functions of matrices, whose rows and columns are in brackets.
#include <algorithm>

#include "graph/named.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

MatrixFunction function_of(Operation op) {
  switch (op) {
#define EIN_CASE(name, operands, is_square, is_packed) \
  case Operation::name:                                \
    return MatrixFunction::name;
    EIN_FOR_EACH_MATRIX_FUNCTION(EIN_CASE)
#undef EIN_CASE
    default:
      throw std::logic_error("build_matrix: no function of matrices");
  }
}

class MatrixBuild {
 public:
  explicit MatrixBuild(NamedBuild& b)
      : b_(b), function_(function_of(b.call().op)), axes_(b.solved().axes) {
    for (const DimIndex& dim : b.solved().reads[0]) {
      if (dim.terms.empty() || !b.solved().marked[static_cast<std::size_t>(dim.terms[0].axis)])
        continue;
      (rows_ < 0 ? rows_ : columns_) = dim.terms[0].axis;
    }
    check();
  }

  Graph run() {
    const Size n = size(rows_), m = size(columns_);
    switch (function_) {
      case MatrixFunction::inverse:
        return b_.finish({b_.add(op(place(columns_, rows_)))});
      case MatrixFunction::det:
        return b_.finish({b_.add(op(place(none, none)))});
      case MatrixFunction::cholesky:
        return b_.finish({b_.add(op(place(rows_, columns_)))});
      case MatrixFunction::solve:
      case MatrixFunction::lstsq:
        return b_.finish({b_.add(op(b_.result()))});
      case MatrixFunction::qr: {
        const int r = add_axis("r", rank());
        const NamedValue all = packed();
        return b_.finish({part(all, 0, rows_, r, place(rows_, r)),
                          part(all, n * size(r), r, columns_, place(r, columns_))});
      }
      case MatrixFunction::svd: {
        const int r = add_axis("r", rank());
        const NamedValue all = packed();
        const Size of_u = n * size(r);
        return b_.finish({part(all, 0, rows_, r, place(rows_, r)),
                          part(all, of_u, none, r, place(r, none)),
                          part(all, of_u + size(r), r, columns_, place(r, columns_))});
      }
      case MatrixFunction::eigh: {
        const NamedValue all = packed();
        return b_.finish({part(all, 0, none, columns_, place(columns_, none)),
                          part(all, m, rows_, columns_, place(rows_, columns_))});
      }
    }
    throw std::logic_error("build_matrix: unknown function");
  }

 private:
  static constexpr int none = -1;
  /// More copies of a matrix than kernels and results take.
  static constexpr std::int64_t most_scratch = 128;

  Size size(int axis) const { return axes_[static_cast<std::size_t>(axis)].size; }
  Size rank() const {
    const Size n = size(rows_), m = size(columns_);
    return always_equal(n, m) || n <= m ? n : m;
  }

  void check() const {
    const bool has_two = info(function_).operands == 2;
    for (std::size_t k = 0; k < b_.operand_count(); ++k) {
      const DType dtype = b_.dtype(k);
      if (dtype == DType::f32 || dtype == DType::f64) continue;
      b_.complain(ErrorKind::dtype,
                  "matrices are of f32 or f64, operand " + std::to_string(k + 1) + " holds " +
                      std::string(name(dtype)),
                  {}, "cast first, x.to(ein::DType::f64)");
    }
    if (has_two && b_.dtype(0) != b_.dtype(1)) {
      b_.complain(ErrorKind::dtype,
                  "the operands have different dtypes, " + std::string(name(b_.dtype(0))) +
                      " and " + std::string(name(b_.dtype(1))),
                  {}, "cast one with .to(dtype)");
    }
    // Views may be of any size without taking memory; what is computed of them is not.
    Shape matrix{size(rows_), size(columns_)}, sides{size(rows_)};
    for (int axis = 0; axis < static_cast<int>(axes_.size()); ++axis) {
      if (role(axis) == MatrixAxis::right) sides.push_back(size(axis));
    }
    for (Shape* scratch : {&matrix, &sides}) {
      const std::string written = scratch->to_string();
      scratch->push_back(most_scratch);
      if (fits_memory(*scratch, sizeof(double))) continue;
      b_.complain(ErrorKind::overflow, "scratch memory for matrices of shape " + written +
                                           " needs more than 2^63 - 1 bytes");
    }
    if (info(function_).is_square && !ask_equal(size(rows_), size(columns_))) {
      std::vector<Mark> marks = b_.marks_of_brackets();
      marks.resize(2);  // those of the first operand
      b_.complain(ErrorKind::size,
                  "a square matrix is wanted, this one is " + to_string(size(rows_)) + " × " +
                      to_string(size(columns_)),
                  marks, has_two ? "lstsq takes any matrix" : "");
    }
  }

  int add_axis(const char* name, Size size) {
    axes_.push_back({name, size});
    return static_cast<int>(axes_.size()) - 1;
  }

  /// The dimensions of the first operand with these axes instead of rows and columns.
  Place place(int rows, int columns) const {
    Place place;
    for (const DimIndex& dim : b_.solved().reads[0]) {
      DimIndex written = dim;
      if (!dim.terms.empty() && (dim.terms[0].axis == rows_ || dim.terms[0].axis == columns_)) {
        const int axis = dim.terms[0].axis == rows_ ? rows : columns;
        if (axis == none) continue;
        written.terms = {{axis, 1}};
      }
      place.shape.push_back(written.terms.empty() ? Size(1) : size(written.terms[0].axis));
      place.access.push_back(std::move(written));
    }
    return place;
  }

  Op op(const Place& place) const {
    std::vector<NamedValue> operands;
    for (std::size_t k = 0; k < b_.operand_count(); ++k) operands.push_back(b_.operand(k));
    Op op = op_of(OpKind::matrix, operands, place, b_.dtype());
    op.function = function_;
    op.axes = axes_;
    for (int axis = 0; axis < static_cast<int>(axes_.size()); ++axis)
      op.roles.push_back(role(axis));
    return op;
  }
  MatrixAxis role(int axis) const {
    if (axis == rows_) return MatrixAxis::rows;
    if (axis == columns_) return MatrixAxis::columns;
    if (uses(b_.solved().reads[0], axis)) return MatrixAxis::batch;
    return static_cast<std::size_t>(axis) < b_.solved().axes.size() ? MatrixAxis::right
                                                                    : MatrixAxis::packed;
  }

  /// All parts of the result, behind the dimensions of the batch.
  NamedValue packed() {
    const std::vector<Axis> axes = axes_;
    axes_ = b_.solved().axes;
    const int parts = add_axis("parts", packed_size(function_, size(rows_), size(columns_)));
    Place all = place(none, none);
    all.access.push_back({0, {{parts, 1}}});
    all.shape.push_back(size(parts));
    const NamedValue value = b_.add(op(all));
    axes_ = axes;
    return value;
  }

  /// Elements from `first` on, in row-major order; `rows` may be none.
  NamedValue part(const NamedValue& all, Size first, int rows, int columns, const Place& place) {
    NamedValue from{all.id, this->place(none, none).access};
    DimIndex along{first, {}};
    if (rows != none) along.terms.push_back({rows, size(columns)});
    along.terms.push_back({columns, 1});
    from.access.push_back(std::move(along));
    Op op = op_of(OpKind::reindex, {from}, place, b_.dtype());
    op.axes = axes_;
    return b_.add(std::move(op));
  }

  NamedBuild& b_;
  MatrixFunction function_;
  std::vector<Axis> axes_;
  int rows_ = none, columns_ = none;
};

}  // namespace

Graph build_matrix(NamedBuild& b) { return MatrixBuild(b).run(); }

}  // namespace ein
