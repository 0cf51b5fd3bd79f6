// Functions of many matrices. Each is copied to scratch memory as f64, whatever its strides,
// decomposed there by one thread, and its result is rounded to where it belongs.
#include <atomic>
#include <limits>
#include <string>
#include <type_traits>

#include "cpu/kernel.hpp"
#include "cpu/loops.hpp"
#include "linalg/decompose.hpp"
#include "machine/parallel.hpp"
#include "size/ask.hpp"

namespace ein::host {
namespace {

using linalg::Failure;

template <class T>
class MatrixKernel final : public Kernel {
 public:
  explicit MatrixKernel(const LoopNest& nest)
      : nest_(nest),
        rows_(axis_of(MatrixAxis::rows)),
        columns_(axis_of(MatrixAxis::columns)),
        batch_(nest, axes_where(nest, is(MatrixAxis::batch))),
        right_(nest, axes_where(nest, is(MatrixAxis::right))),
        sizes_{nest.axes[rows_].size, nest.axes[columns_].size,
               nest.inputs.size() > 1 ? right_.count() : 0} {
    const auto [outer, inner] = linalg::result_axes(nest.function);
    outer_ = along(outer);
    inner_ = along(inner);
    const double work = linalg::estimated_flops(nest.function, static_cast<double>(sizes_.rows),
                                                static_cast<double>(sizes_.columns),
                                                static_cast<double>(sizes_.right));
    const std::int64_t matrices = result_size() == 0 ? 0 : batch_.count();
    const auto in_part = static_cast<std::int64_t>(
        std::clamp(static_cast<double>(elements_per_part) / (work + 1), 1.0, 1e15));
    constexpr std::int64_t most_parts = 16;  // each has memory for a matrix
    parts_ = std::min(most_parts, ceil_div(matrices, in_part));
  }

  std::size_t workspace_bytes(int /*threads*/) const override {
    return static_cast<std::size_t>(parts_) * part_bytes();
  }

  void run(const Run& run) const override {
    std::atomic<std::int64_t> first{none};  // of those that failed, with its failure
    parallel_for(parts_, [&](std::int64_t part) {
      std::byte* const memory = run.workspace + static_cast<std::size_t>(part) * part_bytes();
      auto* const a = reinterpret_cast<double*>(memory);
      auto* const b = reinterpret_cast<double*>(memory + bytes_of_a());
      auto* const result = reinterpret_cast<double*>(memory + bytes_of_a() + bytes_of_b());
      const std::int64_t matrices = batch_.count();
      const auto begin_of = [&](std::int64_t p) {
        return matrices / parts_ * p + std::min(matrices % parts_, p);
      };
      Loops::Cursor cursor(batch_, nest_.axes.size());
      std::int64_t matrix = begin_of(part);
      cursor.seek(matrix);
      for (; matrix < begin_of(part + 1); ++matrix, cursor.next()) {
        load(run, cursor, a, b);
        const Failure failure = linalg::decompose(nest_.function, sizes_,
                                                  std::numeric_limits<T>::epsilon(), a, b, result);
        if (failure == Failure::none)
          store(run, cursor, result);
        else
          note(first, matrix * failures + static_cast<std::int64_t>(failure));
      }
    });
    if (first != none)
      linalg::raise(nest_.function, static_cast<Failure>(first % failures),
                    place(first / failures));
  }

 private:
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max(), failures = 8;

  std::size_t axis_of(MatrixAxis role) const { return axes_where(nest_, is(role)).at(0); }
  auto is(MatrixAxis role) const {
    return [this, role](std::size_t a) { return nest_.axes[a].role == role; };
  }
  std::int64_t result_size() const { return linalg::result_size(nest_.function, sizes_); }

  static std::size_t bytes(std::int64_t elements) {
    return aligned_bytes(static_cast<std::size_t>(elements) * sizeof(double));
  }
  std::size_t bytes_of_a() const { return bytes(sizes_.rows * sizes_.columns); }
  std::size_t bytes_of_b() const {
    return bytes(sizes_.rows * (nest_.inputs.size() > 1 ? sizes_.right : sizes_.columns));
  }
  std::size_t part_bytes() const { return bytes_of_a() + bytes_of_b() + bytes(result_size()); }

  static void note(std::atomic<std::int64_t>& first, std::int64_t failed) {
    std::int64_t least = first;
    while (failed < least && !first.compare_exchange_weak(least, failed)) {
    }
  }

  T* begin(std::size_t o, const Run& run, const Loops::Cursor& cursor) const {
    return reinterpret_cast<T*>(base(nest_.operand(o), run.buffers) + cursor.offset(o));
  }

  /// Copies the operands, column by column.
  void load(const Run& run, const Loops::Cursor& cursor, double* a, double* b) const {
    const auto load_column = [&](const T* from, std::int64_t step, double* to) {
      for (std::int64_t i = 0; i < sizes_.rows; ++i) to[i] = from[i * step];
    };
    const LoopNest::Operand& matrix = nest_.inputs[0];
    const T* const from = begin(0, run, cursor);
    for (std::int64_t j = 0; j < sizes_.columns; ++j)
      load_column(from + j * matrix.strides[columns_], matrix.strides[rows_], a + j * sizes_.rows);
    if (nest_.inputs.size() < 2) return;
    const auto* const right = reinterpret_cast<const std::byte*>(begin(1, run, cursor));
    Loops::Cursor column(right_, nest_.axes.size());
    for (std::int64_t k = 0; k < sizes_.right; ++k, column.next())
      load_column(reinterpret_cast<const T*>(right + column.offset(1)),
                  nest_.inputs[1].strides[rows_], b + k * sizes_.rows);
  }

  void store(const Run& run, const Loops::Cursor& cursor, const double* result) const {
    T* const to = begin(nest_.inputs.size(), run, cursor);
    if (nest_.inputs.size() < 2) {
      for (std::int64_t i = 0; i < outer_.size; ++i) {
        for (std::int64_t j = 0; j < inner_.size; ++j)
          to[i * outer_.step + j * inner_.step] = static_cast<T>(*result++);
      }
      return;
    }
    Loops::Cursor column(right_, nest_.axes.size());
    for (std::int64_t k = 0; k < inner_.size; ++k, column.next()) {
      T* const at = reinterpret_cast<T*>(reinterpret_cast<std::byte*>(to) + column.offset(2));
      for (std::int64_t i = 0; i < outer_.size; ++i)
        at[i * outer_.step] = static_cast<T>(result[i * inner_.size + k]);
    }
  }

  /// An axis of the result; right-hand sides are walked by a cursor.
  struct Along {
    std::int64_t size = 1, step = 0;
  };
  Along along(MatrixAxis role) const {
    const bool is_one = role != MatrixAxis::batch && role != MatrixAxis::right;
    return {linalg::size_along(nest_.function, sizes_, role),
            is_one ? nest_.output.strides[axis_of(role)] : Size(0)};
  }

  /// Where a matrix is: "b = 2, h = 0".
  std::string place(std::int64_t matrix) const {
    std::string text;
    for (std::size_t a = nest_.axes.size(); a-- > 0;) {
      const LoopNest::NestAxis& axis = nest_.axes[a];
      if (axis.role != MatrixAxis::batch) continue;
      const std::int64_t size = axis.size;
      text = axis.name + " = " + std::to_string(matrix % size) + (text.empty() ? "" : ", ") + text;
      matrix /= size;
    }
    return text;
  }

  LoopNest nest_;
  std::size_t rows_, columns_;
  Loops batch_, right_;
  linalg::MatrixSizes sizes_;
  Along outer_, inner_;
  std::int64_t parts_;
};

}  // namespace

std::unique_ptr<Kernel> make_matrix_kernel(const LoopNest& nest) {
  if (nest.compute == DType::f64) return std::make_unique<MatrixKernel<double>>(nest);
  return std::make_unique<MatrixKernel<float>>(nest);
}

}  // namespace ein::host
