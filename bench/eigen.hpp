// Plain Eigen on contiguous matrices, what contractions are measured beside.
#pragma once

#include <Eigen/Core>

#include <ein/ein.hpp>
#include "machine/parallel.hpp"

namespace bench {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A contiguous tensor, or matrix `index` of one of higher rank, as an Eigen matrix.
template <class T = float>
Eigen::Map<RowMajor<T>> matrix(const ein::Tensor& x, std::int64_t rows, std::int64_t cols,
                               std::int64_t index = 0) {
  return {x.data<T>() + index * rows * cols, rows, cols};
}

/// c = a · b by Eigen, the rows of c cut evenly over the threads that ein has.
template <class A, class B, class C>
void eigen_product(const A& a, const B& b, C&& c) {
  const std::int64_t cuts = ein::num_threads();
  ein::host::parallel_for(cuts, [&](std::int64_t cut) {
    const std::int64_t begin = c.rows() * cut / cuts, count = c.rows() * (cut + 1) / cuts - begin;
    c.middleRows(begin, count).noalias() = a.middleRows(begin, count) * b;
  });
}

}  // namespace bench
