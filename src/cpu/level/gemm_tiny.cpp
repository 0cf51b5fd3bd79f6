// Many products of tiny matrices: loops whose lengths the compiler knows.
#include "cpu/level/gemm_kernel.hpp"

namespace ein::host::EIN_LEVEL {
namespace {

template <class C>
using TinyProducts = void (*)(const MatrixRef<C>& c, const MatrixRef<const C>& a,
                              const MatrixRef<const C>& b, const std::int64_t (&steps)[3],
                              std::int64_t count);

/// Where the elements of each matrix lie side by side, their strides are constants too.
template <class C, int rows, int cols, int depth, bool is_side_by_side>
void multiply(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
              const std::int64_t (&steps)[3], std::int64_t count) {
  const auto element = [](auto* data, const auto& matrix, int width, auto i, auto j) -> auto& {
    if constexpr (is_side_by_side)
      return data[i * width + j];
    else
      return data[i * matrix.row_stride + j * matrix.col_stride];
  };
  const C *x = a.data, *y = b.data;
  C* z = c.data;
  for (; count > 0; --count, x += steps[0], y += steps[1], z += steps[2]) {
    C sum[rows][cols];
    repeat<depth>([&](auto k) {
      repeat<rows>([&](auto i) {
        repeat<cols>([&](auto j) {
          const C term = element(x, a, depth, i, k) * element(y, b, cols, k, j);
          sum[i][j] = k == 0 ? term : sum[i][j] + term;
        });
      });
    });
    repeat<rows>(
        [&](auto i) { repeat<cols>([&](auto j) { element(z, c, cols, i, j) = sum[i][j]; }); });
  }
}

template <class C>
struct TinyTable {
  TinyProducts<C> multiply[most_tiny][most_tiny][most_tiny][2];
};
template <class C>
constexpr TinyTable<C> make_tiny_table() {
  TinyTable<C> table{};
  repeat<most_tiny>([&](auto i) {
    repeat<most_tiny>([&](auto j) {
      repeat<most_tiny>([&](auto k) {
        table.multiply[i][j][k][0] = multiply<C, i + 1, j + 1, k + 1, false>;
        table.multiply[i][j][k][1] = multiply<C, i + 1, j + 1, k + 1, true>;
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
  const auto in_rows = [](const auto& m) { return m.col_stride == 1 && m.row_stride == m.cols; };
  const bool is_side_by_side = in_rows(a) && in_rows(b) && in_rows(c);
  tiny_table<C>.multiply[c.rows - 1][c.cols - 1][a.cols - 1][is_side_by_side](c, a, b, steps,
                                                                              count);
}
template void tiny_products(const MatrixRef<float>&, const MatrixRef<const float>&,
                            const MatrixRef<const float>&, const std::int64_t (&)[3], std::int64_t);
template void tiny_products(const MatrixRef<double>&, const MatrixRef<const double>&,
                            const MatrixRef<const double>&, const std::int64_t (&)[3],
                            std::int64_t);

}  // namespace ein::host::EIN_LEVEL
