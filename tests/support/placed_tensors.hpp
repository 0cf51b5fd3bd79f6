// Tensors on a mesh, and what they are where they are whole.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <ein/mesh.hpp>

#include "support/launched.hpp"
#include "support/tensor_values.hpp"

namespace ein::test {

/// Whole numbers, so that sums do not depend on their order.
inline Tensor numbers(const Shape& shape, std::mt19937_64& random, DType dtype = DType::f64) {
  const Tensor x = empty(shape, dtype);
  std::vector<double> values(static_cast<std::size_t>(x.numel()));
  for (double& value : values) value = static_cast<double>(random() % 19) - 9;
  set_values(x, values);
  return x;
}

inline Mesh two_by_two() { return mesh_of({{"data", 2}, {"model", 2}}); }

/// Whole on every process.
inline Tensor whole(const Tensor& x) {
  const std::string lies = placement(x);
  std::string plain;
  for (std::size_t d = 0; d < x.rank(); ++d) plain += " i" + std::to_string(d);
  const std::string pattern = lies + " -> " + plain;
  return reshard(x, runtime(pattern));
}
inline void expect_same(const Tensor& placed, const Tensor& wanted) {
  ASSERT_EQ(placed.shape(), wanted.shape());
  ASSERT_EQ(placed.dtype(), wanted.dtype());
  EXPECT_EQ(get_values(placed.is_placed() ? whole(placed) : placed), get_values(wanted));
}

}  // namespace ein::test
