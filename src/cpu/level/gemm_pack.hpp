// Packing of the operands of a matrix product into what the micro-kernel reads.
#pragma once

#include <algorithm>

#include "cpu/level/gemm_kernel.hpp"

namespace ein::host::EIN_LEVEL {

/// Copies at most 2 · most elements: two pieces of a constant size, which may overlap, take less
/// than a call of memcpy.
template <int most, class T>
[[gnu::always_inline]] inline void copy_few(const T* from, std::int64_t count, T* to) {
  if (count >= most) {
    T first[most], last[most];
    std::memcpy(first, from, sizeof first);
    std::memcpy(last, from + count - most, sizeof last);
    std::memcpy(to, first, sizeof first);
    std::memcpy(to + count - most, last, sizeof last);
  } else if constexpr (most > 1) {
    copy_few<most / 2>(from, count, to);
  }
}

/// Copies at most tile_columns elements.
template <class T>
[[gnu::always_inline]] inline void copy_row(const T* from, std::int64_t count, T* to) {
  copy_few<vector_width<T>>(from, count, to);
}

template <class V, int... i>
[[gnu::always_inline]] inline V interleave_low(const V& x, const V& y,
                                               std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(x, y, (i / 2 + i % 2 * static_cast<int>(sizeof...(i)))...);
}
template <class V, int... i>
[[gnu::always_inline]] inline V interleave_high(const V& x, const V& y,
                                                std::integer_sequence<int, i...>) {
  constexpr int n = sizeof...(i);
  return __builtin_shufflevector(x, y, (n / 2 + i / 2 + i % 2 * n)...);
}

/// to(i, j) = element i of row(j), for a square as long as a vector. A perfect shuffle of the rows,
/// repeated log2(length) times, is a transpose.
template <class T, class Row>
[[gnu::always_inline]] inline void transpose_square(const Row& row, T* to, std::int64_t to_stride) {
  using V = Vector<T>;
  constexpr int n = vector_width<T>;
  constexpr std::make_integer_sequence<int, n> each;
  V rows[n];
  repeat<n>([&](auto i) { rows[i] = row(i); });
  constexpr int rounds = n == 16 ? 4 : n == 8 ? 3 : n == 4 ? 2 : 1;
  repeat<rounds>([&](auto) {
    V shuffled[n];
    repeat<n / 2>([&](auto i) {
      shuffled[2 * i] = interleave_low(rows[i], rows[i + n / 2], each);
      shuffled[2 * i + 1] = interleave_high(rows[i], rows[i + n / 2], each);
    });
    repeat<n>([&](auto i) { rows[i] = shuffled[i]; });
  });
  repeat<n>([&](auto i) { store<T>(to + i * to_stride, rows[i]); });
}

/// `rows` contiguous rows become columns side by side, which may be followed by as many numbers as
/// a vector has.
template <class T>
void turn_rows(const T* from, std::int64_t row_stride, std::int64_t rows, std::int64_t depth,
               T* to) {
  constexpr int width = vector_width<T>;
  std::int64_t done = 0;
  for (; depth - done >= width; done += width) {
    // What a square writes behind its columns is overwritten by the next row of the one before it.
    for (std::int64_t i = (rows - 1) / width * width; i >= 0; i -= width) {
      const T* const square = from + done + i * row_stride;
      const auto row = [&](int r) {
        return r < rows - i ? load(square + r * row_stride) : Vector<T>{};
      };
      transpose_square(row, to + done * rows + i, rows);
    }
  }
  for (; done < depth; ++done) {
    for (std::int64_t i = 0; i < rows; ++i) to[done * rows + i] = from[i * row_stride + done];
  }
}

/// Writes a matrix of at most tile_columns columns as rows of `padded` elements: cols rounded up to
/// whole vectors, zeros behind the columns.
template <class T>
void pack_rows(const T* from, std::int64_t row_stride, std::int64_t col_stride, std::int64_t rows,
               std::int64_t cols, T* to, std::int64_t padded) {
  constexpr int width = vector_width<T>;
  if (col_stride == 1 && cols == tile_columns<T>) {
    for (std::int64_t k = 0; k < rows; ++k) {
      std::memcpy(to + k * padded, from + k * row_stride, sizeof(T) * tile_columns<T>);
    }
    return;
  }
  if (col_stride == 1) {
    for (std::int64_t k = 0; k < rows; ++k) {
      store<T>(to + (k + 1) * padded - width, Vector<T>{});
      copy_row(from + k * row_stride, cols, to + k * padded);
    }
    return;
  }
  std::int64_t done = 0;
  if (row_stride == 1) {
    for (; rows - done >= width; done += width) {
      for (std::int64_t j = 0; j < cols; j += width) {
        const T* const square = from + done + j * col_stride;
        const auto row = [&](int i) {
          return i < cols - j ? load(square + i * col_stride) : Vector<T>{};
        };
        transpose_square(row, to + done * padded + j, padded);
      }
    }
  }
  for (std::int64_t k = done; k < rows; ++k) {
    T* const row = to + k * padded;
    for (std::int64_t j = 0; j < cols; ++j) row[j] = from[k * row_stride + j * col_stride];
    std::fill(row + cols, row + padded, T{});
  }
}

/// Copies any number of elements, the last of them in a piece that may overlap the one before.
template <class T>
[[gnu::always_inline]] inline void copy_run(const T* from, std::int64_t count, T* to) {
  constexpr std::int64_t width = vector_width<T>;
  if (count <= 2 * width) return copy_few<width>(from, count, to);
  for (std::int64_t i = 0; i + width <= count; i += width) store<T>(to + i, load(from + i));
  store<T>(to + count - width, load(from + count - width));
}

/// Some columns of a matrix that lie evenly.
struct Piece {
  std::int64_t begin, count, place;
};
/// Columns [col, col + cols) of a matrix, cut where runs end.
class Pieces {
 public:
  static constexpr std::int64_t most_columns = 64;

  template <class T>
  Pieces(const MatrixRef<T>& m, std::int64_t col, std::int64_t cols) : stride_(m.col_stride) {
    for_each_piece(m.col_runs, m.col_stride, col, cols,
                   [&](std::int64_t begin, std::int64_t count, std::int64_t place) {
                     pieces_[count_++] = {begin, count, place};
                   });
  }
  template <class T>
  void gather(const T* from, T* to) const {
    for (int p = 0; p < count_; ++p) {
      const auto [begin, count, place] = pieces_[p];
      if (stride_ == 1) {
        copy_run(from + place, count, to + begin);
      } else {
        for (std::int64_t j = 0; j < count; ++j) to[begin + j] = from[place + j * stride_];
      }
    }
  }
  template <class T>
  void spread(const T* from, T* to) const {
    for (int p = 0; p < count_; ++p) {
      const auto [begin, count, place] = pieces_[p];
      if (stride_ == 1) {
        copy_run(from + begin, count, to + place);
      } else {
        for (std::int64_t j = 0; j < count; ++j) to[place + j * stride_] = from[begin + j];
      }
    }
  }

 private:
  Piece pieces_[most_columns];
  std::int64_t stride_;
  int count_ = 0;
};

/// A part of a matrix: rows [row, row + rows) of columns [col, col + cols).
struct Part {
  std::int64_t row, rows, col, cols;
};

/// Calls f(pieces, line of m, line of the copy) for each row of a part, some columns at a time;
/// rows of the copy are `stride` apart.
template <class T, class U, class F>
[[gnu::always_inline]] inline void for_each_line(const MatrixRef<T>& m, const Part& part, U* copy,
                                                 std::int64_t stride, const F& f) {
  for (std::int64_t j = 0; j < part.cols; j += Pieces::most_columns) {
    const Pieces pieces(m, part.col + j, std::min(Pieces::most_columns, part.cols - j));
    for_each_piece(m.row_runs, m.row_stride, part.row, part.rows,
                   [&](std::int64_t begin, std::int64_t count, std::int64_t place) {
                     T* line = m.data + place;
                     for (std::int64_t i = 0; i < count; ++i, line += m.row_stride)
                       f(pieces, line, copy + (begin + i) * stride + j);
                   });
  }
}

/// Copies a part of a matrix to rows that are `stride` apart.
template <class T>
void gather(const MatrixRef<const T>& m, const Part& part, T* to, std::int64_t stride) {
  for_each_line(m, part, to, stride,
                [](const Pieces& pieces, const T* from, T* line) { pieces.gather(from, line); });
}
/// Copies such rows to a part of a matrix.
template <class T>
void spread(const T* from, std::int64_t stride, const MatrixRef<T>& m, const Part& part) {
  for_each_line(m, part, from, stride,
                [](const Pieces& pieces, T* to, const T* line) { pieces.spread(line, to); });
}

/// Whether what lies side by side in a part of a matrix is rows, or longer runs of them, rather
/// than columns.
template <class T>
bool lies_in_columns(const MatrixRef<T>& m, const Part& part) {
  const auto run = [](std::int64_t stride, const Runs& runs, std::int64_t count) {
    return stride != 1 ? 0 : runs ? std::min(runs.length, count) : count;
  };
  return run(m.row_stride, m.row_runs, part.rows) > run(m.col_stride, m.col_runs, part.cols);
}

/// pack_rows of a part of at most tile_columns columns of a matrix that lies in runs.
template <class T>
void pack_rows(const MatrixRef<const T>& m, const Part& part, T* to, std::int64_t padded) {
  if (!lies_in_columns(m, part)) {
    for (std::int64_t k = 0; k < part.rows && part.cols < padded; ++k)
      store<T>(to + (k + 1) * padded - vector_width<T>, Vector<T>{});
    return gather(m, part, to, padded);
  }
  constexpr std::int64_t deep = Pieces::most_columns;
  alignas(64) T lines[tile_columns<T> * deep];
  for (std::int64_t k = 0; k < part.rows; k += deep) {
    const std::int64_t depth = std::min(deep, part.rows - k);
    gather(m.transposed(), {part.col, part.cols, part.row + k, depth}, lines, deep);
    pack_rows(lines, 1, deep, depth, part.cols, to + k * padded, padded);
  }
}

/// turn_rows of a part of at most tile_rows rows of a matrix that lies in runs.
template <class T>
void turn_rows(const MatrixRef<const T>& m, const Part& part, T* to) {
  if (m.col_stride != 1 || lies_in_columns(m, part))
    return gather(m.transposed(), {part.col, part.cols, part.row, part.rows}, to, part.rows);
  constexpr std::int64_t deep = Pieces::most_columns;
  alignas(64) T lines[tile_rows * deep];
  for (std::int64_t k = 0; k < part.cols; k += deep) {
    const std::int64_t depth = std::min(deep, part.cols - k);
    gather(m, {part.row, part.rows, part.col + k, depth}, lines, deep);
    turn_rows(lines, deep, part.rows, depth, to + k * part.rows);
  }
}

}  // namespace ein::host::EIN_LEVEL
