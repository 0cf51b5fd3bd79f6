// Many products of tiny matrices: loops whose lengths the compiler knows.
#include "cpu/level/gemm_kernel.hpp"

namespace ein::host::EIN_LEVEL {
namespace {

template <class C>
using TinyProducts = void (*)(const MatrixRef<C>& c, const MatrixRef<const C>& a,
                              const MatrixRef<const C>& b, const std::int64_t (&steps)[3],
                              std::int64_t count);

/// How the elements of a matrix lie: side by side, row after row or column after column, where
/// their places are constants, or a stride apart.
enum class Order { rows, columns, strides };

template <class C>
Order order_of(const MatrixRef<C>& m) {
  const auto in_rows = [](const MatrixRef<C>& x) {
    return (x.cols == 1 || x.col_stride == 1) && (x.rows == 1 || x.row_stride == x.cols);
  };
  return in_rows(m) ? Order::rows : in_rows(m.transposed()) ? Order::columns : Order::strides;
}

/// Element (i, j) of the matrix of that many rows and columns which is now at `data`.
template <Order order, int rows, int cols, class C>
C& element(C* data, const MatrixRef<C>& matrix, int i, int j) {
  if constexpr (order == Order::rows) return data[i * cols + j];
  if constexpr (order == Order::columns) return data[j * rows + i];
  return data[i * matrix.row_stride + j * matrix.col_stride];
}

template <class C, int rows, int cols, int depth, Order of_a, Order of_b, Order of_c>
void multiply(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
              const std::int64_t (&steps)[3], std::int64_t count) {
  const C *x = a.data, *y = b.data;
  C* z = c.data;
  for (; count > 0; --count, x += steps[0], y += steps[1], z += steps[2]) {
    asm("" : "+r"(count));  // or GCC puts several matrices into a vector, which takes far longer
    C sum[rows][cols];
    repeat<depth>([&](auto k) {
      repeat<rows>([&](auto i) {
        repeat<cols>([&](auto j) {
          const C term =
              element<of_a, rows, depth>(x, a, i, k) * element<of_b, depth, cols>(y, b, k, j);
          sum[i][j] = k == 0 ? term : sum[i][j] + term;
        });
      });
    });
    repeat<rows>([&](auto i) {
      repeat<cols>([&](auto j) { element<of_c, rows, cols>(z, c, i, j) = sum[i][j]; });
    });
  }
}

/// Where c is in rows, and of a and b one at least. A single row or column is in rows as well.
template <class C>
struct TinyTable {
  struct Entry {
    TinyProducts<C> in_rows, a_in_columns, b_in_columns, any;
  };
  Entry of[most_tiny][most_tiny][most_tiny];
};
template <class C>
constexpr TinyTable<C> make_tiny_table() {
  constexpr Order r = Order::rows, c = Order::columns, s = Order::strides;
  TinyTable<C> table{};
  repeat<most_tiny>([&](auto i) {
    repeat<most_tiny>([&](auto j) {
      repeat<most_tiny>([&](auto k) {
        constexpr int rows = i + 1, cols = j + 1, depth = k + 1;
        auto& entry = table.of[i][j][k];
        entry.in_rows = multiply<C, rows, cols, depth, r, r, r>;
        entry.any = multiply<C, rows, cols, depth, s, s, s>;
        entry.a_in_columns = entry.b_in_columns = entry.any;
        if constexpr (!is_small && rows > 1 && depth > 1)
          entry.a_in_columns = multiply<C, rows, cols, depth, c, r, r>;
        if constexpr (!is_small && cols > 1 && depth > 1)
          entry.b_in_columns = multiply<C, rows, cols, depth, r, c, r>;
      });
    });
  });
  return table;
}
template <class C>
constexpr TinyTable<C> tiny_table = make_tiny_table<C>();

}  // namespace

template <class C>
void tiny_products(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
                   const std::int64_t (&steps)[3], std::int64_t count) {
  const Order of_c = order_of(c), of_a = order_of(a), of_b = order_of(b);
  if (of_c == Order::columns) {
    return EIN_LEVEL::tiny_products<C>(c.transposed(), b.transposed(), a.transposed(),
                                       {steps[1], steps[0], steps[2]}, count);
  }
  const auto& entry = tiny_table<C>.of[c.rows - 1][c.cols - 1][a.cols - 1];
  const auto are = [&](Order x, Order y) { return of_a == x && of_b == y && of_c == Order::rows; };
  (are(Order::rows, Order::rows)      ? entry.in_rows
   : are(Order::columns, Order::rows) ? entry.a_in_columns
   : are(Order::rows, Order::columns) ? entry.b_in_columns
                                      : entry.any)(c, a, b, steps, count);
}
template void tiny_products(const MatrixRef<float>&, const MatrixRef<const float>&,
                            const MatrixRef<const float>&, const std::int64_t (&)[3], std::int64_t);
template void tiny_products(const MatrixRef<double>&, const MatrixRef<const double>&,
                            const MatrixRef<const double>&, const std::int64_t (&)[3],
                            std::int64_t);

}  // namespace ein::host::EIN_LEVEL
