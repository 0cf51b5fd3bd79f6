// Matrix products on operands as they lie, by one of two engines: Eigen, which has every type and
// processor, and products in blocks of our own, of floating-point numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include <ein/dtype.hpp>
#include <ein/shape.hpp>
#include "machine/cache.hpp"

namespace ein::host {

/// Rows or columns that no one stride walks, as those of several axes: runs of `length` which one
/// does, run r beginning `starts[r]` behind the first. Without starts all are one run.
struct Runs {
  std::int64_t length = 0;
  const std::int64_t* starts = nullptr;

  explicit operator bool() const { return starts; }
  /// Where number `i` lies.
  std::int64_t at(std::int64_t i, std::int64_t stride) const {
    return starts ? starts[i / length] + i % length * stride : i * stride;
  }
  /// How many of those from `i` on, of `count`, are in one run.
  std::int64_t count_from(std::int64_t i, std::int64_t count) const {
    return starts ? std::min(count, length - i % length) : count;
  }
};

/// Calls f(begin, count, place) for each piece of [first, first + count) that is in one run;
/// `begin` counts from `first`.
template <class F>
void for_each_piece(const Runs& runs, std::int64_t stride, std::int64_t first, std::int64_t count,
                    const F& f) {
  if (!runs) return f(std::int64_t{0}, count, first * stride);
  std::int64_t run = first / runs.length, in_run = first % runs.length;
  for (std::int64_t begin = 0; begin < count; ++run, in_run = 0) {
    const std::int64_t piece = std::min(count - begin, runs.length - in_run);
    f(begin, piece, runs.starts[run] + in_run * stride);
    begin += piece;
  }
}

/// A matrix in memory; strides in elements.
template <class C>
struct MatrixRef {
  C* data;
  std::int64_t rows, cols, row_stride, col_stride;
  Runs row_runs{}, col_runs{};

  MatrixRef transposed() const {
    return {data, cols, rows, col_stride, row_stride, col_runs, row_runs};
  }
  /// Rows [begin, begin + count) of a matrix whose rows are one run.
  MatrixRef rows_from(std::int64_t begin, std::int64_t count) const {
    return {data + begin * row_stride, count, cols, row_stride, col_stride, {}, col_runs};
  }
  /// Columns [begin, begin + count), of which each run is in one piece or left out.
  MatrixRef columns_from(std::int64_t begin, std::int64_t count) const {
    MatrixRef part = *this;
    part.cols = count;
    if (col_runs)
      part.col_runs.starts += begin / col_runs.length;
    else
      part.data += begin * col_stride;
    return part;
  }
  MatrixRef<const C> read_only() const {
    return {data, rows, cols, row_stride, col_stride, row_runs, col_runs};
  }
  std::int64_t row_at(std::int64_t i) const { return row_runs.at(i, row_stride); }
  std::int64_t col_at(std::int64_t j) const { return col_runs.at(j, col_stride); }
  bool has_runs() const { return row_runs || col_runs; }
  bool is_column_major() const { return row_stride == 1 || rows <= 1; }
  bool is_row_major() const { return col_stride == 1 || cols <= 1; }
};

/// A reference to what is to be done with a part of a product that is ready, for the time of one
/// call: rows [row, row + rows) of columns [col, col + cols). Of results in bf16 it gets the part's
/// sums in f32, one row after the other or one column after the other, and writes the results
/// itself; other parts lie in the result, and `sums` is null.
class Finish {
 public:
  /// A matrix as large as the product that is read for it: where it begins, and the bytes from row
  /// to row and from column to column.
  struct Read {
    const std::byte* data;
    std::int64_t row_bytes, col_bytes;
  };

  Finish() = default;
  /// `far` are those reads that come from beyond the second-level cache.
  template <class F>
  Finish(const F& f, Order order = Order::row_major, std::span<const Read> far = {})
      : far_(far),
        object_(&f),
        call_([](const void* object, std::int64_t row, std::int64_t rows, std::int64_t col,
                 std::int64_t cols, const float* sums) {
          (*static_cast<const F*>(object))(row, rows, col, cols, sums);
        }),
        order_(order) {}
  explicit operator bool() const { return call_; }
  /// How the sums of a part lie.
  Order order() const { return order_; }
  void operator()(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols,
                  const float* sums = nullptr) const {
    if (is_transposed_) {
      call_(object_, col, cols, row, rows, sums);
    } else {
      call_(object_, row, rows, col, cols, sums);
    }
  }
  /// Fetches what will be read from afar for a part. While its products are computed, memory has
  /// time. Inlined, since GCC drops calls of functions that do nothing but fetch.
  [[gnu::always_inline]] void fetch(std::int64_t row, std::int64_t rows, std::int64_t col,
                                    std::int64_t cols) const {
    for (const Read& read : far_) {
      std::int64_t row_bytes = read.row_bytes, col_bytes = read.col_bytes;
      if (is_transposed_) std::swap(row_bytes, col_bytes);
      const std::byte* line = read.data + row * row_bytes + col * col_bytes;
      const bool along_rows = col_bytes <= row_bytes;
      const std::int64_t lines = along_rows ? rows : cols,
                         to_next = along_rows ? row_bytes : col_bytes,
                         length = along_rows ? cols * col_bytes : rows * row_bytes;
      for (std::int64_t l = 0; l < lines; ++l, line += to_next) {
        for (std::int64_t at = 0; at < length; at += line_bytes)
          __builtin_prefetch(line + at, 0, 2);
        // The end of one that begins inside a cache line.
        __builtin_prefetch(line + length - 1, 0, 2);
      }
    }
  }
  /// The same for the transposed product.
  Finish transposed() const {
    Finish result = *this;
    result.is_transposed_ = !is_transposed_;
    result.order_ = order_ == Order::row_major ? Order::column_major : Order::row_major;
    return result;
  }
  /// Where the sums of such a part go.
  MatrixRef<float> sums_at(float* data, std::int64_t rows, std::int64_t cols) const {
    return order_ == Order::row_major ? MatrixRef<float>{data, rows, cols, cols, 1}
                                      : MatrixRef<float>{data, rows, cols, 1, rows};
  }

 private:
  std::span<const Read> far_;
  const void* object_ = nullptr;
  void (*call_)(const void*, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                const float*) = nullptr;
  bool is_transposed_ = false;
  Order order_ = Order::row_major;
};

/// At least 1. Of views whose elements repeat, more than an integer holds.
inline double multiply_adds(std::int64_t rows, std::int64_t cols, std::int64_t depth) {
  return std::max(
      1.0, static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(depth));
}
/// So many are worth handing to another thread: some microseconds' work.
inline constexpr double least_multiply_adds = 1 << 18;

/// Whether Eigen computes all matrix products: EIN_PRODUCTS=eigen in the environment, read once.
/// Throws an Error (`value`) for any other word there.
bool products_are_by_eigen();

/// Whether gemm takes matrices of any strides and runs. Otherwise they have no runs, and one stride
/// of each must be 1, or belong to a dimension of size <= 1.
template <class C>
bool gemm_takes_any_strides() {
  return std::is_floating_point_v<C> && !products_are_by_eigen();
}

/// c = a · b, or c += a · b, on the pool's threads too (parallel.hpp); c must not overlap the
/// others. C is float, double or std::uint64_t (integers wrap). `finish` is called for parts of c,
/// while they are in the first-level cache, by any thread, and not again for what it has seen.
template <class C>
void gemm(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
          bool accumulate, const Finish& finish = {});

/// The most rows and columns of a tiny matrix: a call takes longer than a product of two.
inline constexpr std::int64_t most_tiny = 4;
/// `count` products c = a · b of tiny matrices, each `steps` elements (of a, b and c) behind the
/// one before. C is float or double.
template <class C>
void tiny_products(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
                   const std::int64_t (&steps)[3], std::int64_t count);

/// A dot product, in lanes side by side, of the same types.
template <class C>
C dot(const C* a, const C* b, std::int64_t n);

/// Whether each of the matrices has one stride along its rows, and one along its columns, that go
/// forward. Products in blocks, in f32 and f64, and of bf16 in pairs, take all others.
template <class C, class In>
bool are_plain(const MatrixRef<C>& c, const MatrixRef<In>& a, const MatrixRef<In>& b) {
  const auto is_plain = [](const auto& m) {
    return !m.has_runs() && m.row_stride > 0 && m.col_stride > 0;
  };
  return is_plain(c) && is_plain(a) && is_plain(b);
}

/// So many rows are few: their products read each weight from memory once.
inline constexpr std::int64_t most_few_rows = 16;
/// Whether c has few rows, and columns of b are weights that are neighbours along a side.
template <class C, class In>
bool has_few_rows(const MatrixRef<C>& c, const MatrixRef<In>& b) {
  return c.rows <= most_few_rows && (b.row_stride == 1 || b.col_stride == 1);
}
/// The same, or so of the transposed product.
template <class C, class In>
bool has_few_rows(const MatrixRef<C>& c, const MatrixRef<In>& a, const MatrixRef<In>& b) {
  if (c.rows == 0 || c.cols == 0 || a.cols == 0 || !are_plain(c, a, b)) return false;
  return has_few_rows(c, b) || has_few_rows(c.transposed(), a.transposed());
}
/// Of such a product, whether the weights are a, and the rows columns of b.
template <class C, class In>
bool has_few_columns(const MatrixRef<C>& c, const MatrixRef<In>& a, const MatrixRef<In>& b) {
  const bool can = has_few_rows(c.transposed(), a.transposed());
  return can && (c.rows > c.cols || !has_few_rows(c, b));
}

/// Whether bf16_product takes products that do not have few rows: by the processor, EIN_ISA and
/// EIN_PRODUCTS.
bool multiplies_bf16();
/// The most terms of a sum whose result is bf16; longer ones are added in float and rounded when
/// complete.
inline constexpr std::int64_t most_bf16_terms = 2048;
/// c = a · b, or c += a · b, on the pool's threads too, of any strides. C is float or bf16. Sums
/// are in f32; where the processor multiplies bf16, pair by pair by VDPBF16PS or TDPBF16PS, which
/// take subnormal numbers for 0 (Intel 64 and IA-32 Architectures Software Developer's Manual,
/// volume 2). A result in bf16 is rounded once, and cannot be accumulated to. `finish`: see gemm;
/// that of results in bf16 writes them.
template <class C>
void bf16_product(const MatrixRef<C>& c, const MatrixRef<const bf16>& a,
                  const MatrixRef<const bf16>& b, bool accumulate, const Finish& finish = {});

}  // namespace ein::host
