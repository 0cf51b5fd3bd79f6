// Oracles along marked axes: which elements of a row-major array belong together.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <ein/shape.hpp>
#include "support/tensor_values.hpp"

namespace ein::test {

/// The elements of an array of `shape`, by their row-major number, in groups that differ in marked
/// axes only: groups in the order of the other axes, elements in that of the marked ones.
inline std::vector<std::vector<std::size_t>> rows_along(const Shape& shape,
                                                        const std::vector<bool>& marked) {
  std::int64_t rows = 1;
  for (std::size_t d = 0; d < shape.rank(); ++d) rows *= marked[d] ? Size(1) : shape[d];
  std::vector<std::vector<std::size_t>> result(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < numel(shape); ++i) {
    std::int64_t rest = i, row = 0, step = 1;
    for (std::size_t d = shape.rank(); d-- > 0;) {
      if (!marked[d]) {
        row += rest % shape[d] * step;
        step *= shape[d];
      }
      rest /= shape[d];
    }
    result[static_cast<std::size_t>(row)].push_back(static_cast<std::size_t>(i));
  }
  return result;
}

/// Three axes a, b and c of 1 to 9 elements, one of them in brackets.
struct MarkedAxis {
  std::size_t axis = 0;
  Shape shape;
  std::vector<bool> marked;
  std::string pattern;  // " a [b] c"

  template <class Random>
  static MarkedAxis random(Random& random) {
    MarkedAxis one{random() % 3, {}, {}, {}};
    for (std::size_t d = 0; d < 3; ++d) {
      one.shape.push_back(1 + static_cast<std::int64_t>(random() % 9));
      one.marked.push_back(d == one.axis);
      const std::string name(1, "abc"[d]);
      one.pattern += one.marked[d] ? " [" + name + "]" : " " + name;
    }
    return one;
  }
};

/// A tensor in some random layout, of values that its dtype holds, between -4 and 4.
template <class Random>
Tensor scattered_values(const Shape& shape, DType dtype, Random& random) {
  const Tensor x = scattered_tensor(shape, dtype, std::vector<bool>(shape.rank(), false), random);
  std::vector<double> values(static_cast<std::size_t>(numel(shape)));
  for (double& value : values) value = std::uniform_real_distribution<>(-4, 4)(random);
  set_values(x, values);
  return x;
}

/// The error that one rounding to `dtype` and computation in f32 may leave, relative to values of
/// about 1.
inline double tolerance(DType dtype) {
  return dtype == DType::f64 ? 1e-13 : finfo(dtype).eps + 2e-6;
}

}  // namespace ein::test
