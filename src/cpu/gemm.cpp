#include "cpu/gemm.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <ein/error.hpp>
#include "cpu/level.hpp"
#include "machine/environment.hpp"
#include "machine/fork.hpp"
#include "machine/parallel.hpp"
#include "size/ask.hpp"

namespace ein::host {
namespace {

template <class C>
bool has_unit_stride(const MatrixRef<C>& m) {
  return m.is_column_major() || m.is_row_major();
}

/// A product of few rows, turned where that makes them few.
struct FewRowsShape {
  std::int64_t rows, weights;
  bool along_depth;  // where weights are neighbours; else along the columns
};
template <class C, class In>
FewRowsShape shape_of_few_rows(const MatrixRef<C>& c, const MatrixRef<In>& a,
                               const MatrixRef<In>& b) {
  if (has_few_columns(c, a, b)) return {c.cols, a.rows * a.cols, a.col_stride == 1};
  return {c.rows, b.rows * b.cols, b.row_stride == 1};
}

/// Whether the kernel of few rows is faster than that in blocks, which packs weights and rows. Of
/// weights side by side along the columns it has nothing to gain in or near the second-level cache;
/// along the depth, that packing them pays takes rows to share it, in a product that is not too
/// large.
template <class C, class In>
bool is_faster_by_rows(const MatrixRef<C>& c, const MatrixRef<In>& a, const MatrixRef<In>& b) {
  if (!has_few_rows(c, a, b)) return false;
  const auto [rows, weights, along_depth] = shape_of_few_rows(c, a, b);
  if (along_depth) return weights >= 256 * rows * rows;
  return weights >= 2 * caches().l2 / static_cast<std::int64_t>(sizeof(In));
}

/// Whether Eigen's product with a vector is faster than one in blocks.
template <class C>
bool is_faster_by_eigen(const MatrixRef<C>& c, const MatrixRef<const C>& a,
                        const MatrixRef<const C>& b) {
  return (c.rows <= 1 || c.cols <= 1) && c.rows * c.cols * a.cols >= 128 * 128 &&
         has_unit_stride(c) && has_unit_stride(a) && has_unit_stride(b);
}

/// product(c, a, b, finish), or so of pieces of it along its longer side that threads share out: of
/// engines that work on one thread.
template <class C, class In, class Product>
void by_pieces(const MatrixRef<C>& c, const MatrixRef<const In>& a, const MatrixRef<const In>& b,
               const Finish& finish, const Product& product) {
  const std::int64_t longer = std::max(c.rows, c.cols);
  // Whole vectors of the kernels, so that only the last piece has a ragged edge.
  constexpr std::int64_t step = 16;
  const double worthwhile = multiply_adds(c.rows, c.cols, a.cols) / least_multiply_adds;
  const auto pieces = static_cast<std::int64_t>(
      std::min({static_cast<double>(longer / step), 4.0 * num_threads(), worthwhile}));
  if (pieces <= 1 || !runs_in_parallel()) return product(c, a, b, finish);
  parallel_for(pieces, [&](std::int64_t piece) {
    const auto edge = [&](std::int64_t i) {
      return i == pieces ? longer : longer * i / pieces / step * step;
    };
    const std::int64_t begin = edge(piece), count = edge(piece + 1) - begin;
    const bool of_rows = c.rows >= c.cols;
    const auto finish_piece = [&](std::int64_t row, std::int64_t rows, std::int64_t col,
                                  std::int64_t cols, const float* sums) {
      finish(of_rows ? begin + row : row, rows, of_rows ? col : begin + col, cols, sums);
    };
    const Finish done = finish ? Finish(finish_piece, finish.order()) : Finish();
    if (of_rows) {
      product(c.rows_from(begin, count), a.rows_from(begin, count), b, done);
    } else {
      product(c.transposed().rows_from(begin, count).transposed(), a,
              b.transposed().rows_from(begin, count).transposed(), done);
    }
  });
}

/// Turned where that makes the rows few, before it is cut: pieces of one product add up in one
/// order.
template <class C, class In, class FewRows>
void by_few_rows(FewRows product, const MatrixRef<C>& c, const MatrixRef<const In>& a,
                 const MatrixRef<const In>& b, bool accumulate, const Finish& finish) {
  if (has_few_columns(c, a, b)) {
    return by_few_rows(product, c.transposed(), b.transposed(), a.transposed(), accumulate,
                       finish.transposed());
  }
  by_pieces(c, a, b, finish,
            [&](const auto& to, const auto& left, const auto& right, const Finish& done) {
              product(caches(), to, left, right, accumulate, done);
            });
}

}  // namespace

bool products_are_by_eigen() {
  return made_once([] {
    const std::string word = environment(Variable::products);
    if (!word.empty() && word != "eigen") {
      throw Error(ErrorKind::value, "EIN_PRODUCTS is '" + word +
                                        "', which is no engine of matrix products\n"
                                        "  help: it may be eigen, or not be set");
    }
    return !word.empty();
  });
}

template <class C>
void gemm(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
          bool accumulate, const Finish& finish) {
  const Level::Products<C>& products = level().products<C>();
  const bool by_eigen = products_are_by_eigen() || !products.blocked;
  if (!by_eigen && !are_plain(c, a, b)) {
    products.blocked(caches(), c, a, b, accumulate, finish);
  } else if (!by_eigen && products.small(c, a, b, accumulate)) {
    if (finish) finish(0, c.rows, 0, c.cols);
  } else if (!by_eigen && is_faster_by_rows(c, a, b)) {
    by_few_rows(products.few_rows, c, a, b, accumulate, finish);
  } else if (!by_eigen && !is_faster_by_eigen(c, a, b)) {
    products.blocked(caches(), c, a, b, accumulate, finish);
  } else {
    by_pieces(c, a, b, finish,
              [&](const auto& to, const auto& left, const auto& right, const Finish& done) {
                products.eigen(to, left, right, accumulate);
                if (done) done(0, to.rows, 0, to.cols);
              });
  }
}

template <class C>
C dot(const C* a, const C* b, std::int64_t n) {
  return level().products<C>().dot(a, b, n);
}

#define EIN_INSTANTIATE(C)                                                                      \
  template void gemm(const MatrixRef<C>&, const MatrixRef<const C>&, const MatrixRef<const C>&, \
                     bool, const Finish&);                                                      \
  template C dot(const C*, const C*, std::int64_t);
EIN_INSTANTIATE(float)
EIN_INSTANTIATE(double)
EIN_INSTANTIATE(std::uint64_t)
#undef EIN_INSTANTIATE

template <class C>
void tiny_products(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
                   const std::int64_t (&steps)[3], std::int64_t count) {
  level().products<C>().tiny(c, a, b, steps, count);
}
template void tiny_products(const MatrixRef<float>&, const MatrixRef<const float>&,
                            const MatrixRef<const float>&, const std::int64_t (&)[3], std::int64_t);
template void tiny_products(const MatrixRef<double>&, const MatrixRef<const double>&,
                            const MatrixRef<const double>&, const std::int64_t (&)[3],
                            std::int64_t);

bool multiplies_bf16() { return bf16_products().in_pairs && !products_are_by_eigen(); }

namespace {

/// Whether tiles, which hold all rows, are faster than vectors. Weights side by side along the
/// columns have to be put in pairs for them.
template <class C>
bool is_faster_in_tiles(const MatrixRef<C>& c, const MatrixRef<const bf16>& a,
                        const MatrixRef<const bf16>& b) {
  const FewRowsShape shape = shape_of_few_rows(c, a, b);
  return shape.rows >= (shape.along_depth ? 3 : 6);
}

template <class C, class FewRows, class Product>
void bf16_product_by(FewRows of_few_rows, FewRows in_tiles, Product in_pairs, const MatrixRef<C>& c,
                     const MatrixRef<const bf16>& a, const MatrixRef<const bf16>& b,
                     bool accumulate, const Finish& finish) {
  // Packing takes longer where it is for tiles.
  const bool by_rows = in_tiles ? has_few_rows(c, a, b) : is_faster_by_rows(c, a, b);
  if (in_pairs && !by_rows) return in_pairs(c, a, b, accumulate, finish);
  const bool by_tiles = in_tiles && is_faster_in_tiles(c, a, b);
  by_few_rows(by_tiles ? in_tiles : of_few_rows, c, a, b, accumulate, finish);
}

}  // namespace

template <>
void bf16_product(const MatrixRef<float>& c, const MatrixRef<const bf16>& a,
                  const MatrixRef<const bf16>& b, bool accumulate, const Finish& finish) {
  const Bf16Products& products = bf16_products();
  bf16_product_by(products.few_rows.to_f32, products.few_rows_in_tiles.to_f32,
                  products.in_pairs ? products.in_pairs->to_f32 : nullptr, c, a, b, accumulate,
                  finish);
}
template <>
void bf16_product(const MatrixRef<bf16>& c, const MatrixRef<const bf16>& a,
                  const MatrixRef<const bf16>& b, bool accumulate, const Finish& finish) {
  const Bf16Products& products = bf16_products();
  bf16_product_by(products.few_rows.to_bf16, products.few_rows_in_tiles.to_bf16,
                  products.in_pairs ? products.in_pairs->to_bf16 : nullptr, c, a, b, accumulate,
                  finish);
}

}  // namespace ein::host
