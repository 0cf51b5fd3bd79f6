#include "cpu/gemm.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

#include <ein/error.hpp>
#include "cpu/level.hpp"
#include "tensor/fork.hpp"

namespace ein::host {
bool products_are_by_eigen() {
  return made_once([] {
    const char* const text = std::getenv("EIN_PRODUCTS");
    const std::string_view word = text ? text : "";
    if (!word.empty() && word != "eigen") {
      throw Error(ErrorKind::value, "EIN_PRODUCTS is '" + std::string(word) +
                                        "', no engine of matrix products\n"
                                        "  help: it may be eigen, or not be set");
    }
    return !word.empty();
  });
}

template <class C>
void gemm(const MatrixRef<C>& c, const MatrixRef<const C>& a, const MatrixRef<const C>& b,
          bool accumulate, const Finish& finish) {
  const Level::Products<C>& products = level().products<C>();
  if (products_are_by_eigen()) {
    products.eigen(c, a, b, accumulate);
  } else if (!products.small(c, a, b, accumulate)) {
    if (products.few_rows && has_few_rows(c, a, b))
      return products.few_rows(c, a, b, accumulate, finish);
    if (products.blocked) return products.blocked(c, a, b, accumulate, finish);
    products.eigen(c, a, b, accumulate);
  }
  if (finish) finish(0, c.rows, 0, c.cols);
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

bool multiplies_bf16() { return bf16_products() && !products_are_by_eigen(); }

template <>
void bf16_product(const MatrixRef<float>& c, const MatrixRef<const bf16>& a,
                  const MatrixRef<const bf16>& b, bool accumulate, const Finish& finish) {
  const bool has_few = has_few_rows(c, a, b);
  const auto product = has_few ? level().few_rows_of_bf16.to_f32 : bf16_products()->to_f32;
  product(c, a, b, accumulate, finish);
}
template <>
void bf16_product(const MatrixRef<bf16>& c, const MatrixRef<const bf16>& a,
                  const MatrixRef<const bf16>& b, bool accumulate, const Finish& finish) {
  const bool has_few = has_few_rows(c, a, b);
  const auto product = has_few ? level().few_rows_of_bf16.to_bf16 : bf16_products()->to_bf16;
  product(c, a, b, accumulate, finish);
}

}  // namespace ein::host
