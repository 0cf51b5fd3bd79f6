// The largest numbers of which means, variances and norms are right, as their declarations say.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using Values = std::vector<double>;

double largest(DType dtype) {
  return dtype == DType::f64 ? std::numeric_limits<double>::max()
                             : std::numeric_limits<float>::max();
}

/// n numbers of this size, half of them negative; of rows, or the other way round.
Tensor both_signs(int rows, int n, double size, bool in_columns, DType dtype) {
  Values values;
  for (int r = 0; r < rows; ++r) {
    for (int i = 0; i < n; ++i) values.push_back((i * 7 + r) % 2 == 0 ? size : -size);
  }
  const Tensor x = from_vector(values, {rows, n}).to(dtype);
  return in_columns ? rearrange(x, "r n -> n r").contiguous() : x;
}

void expect_all(const Tensor& x, double expected, const std::string& what) {
  const double tolerance = std::abs(expected) * 1e-5;
  for (const double value : test::get_values(x)) ASSERT_NEAR(value, expected, tolerance) << what;
}

class DomainOfSums : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, DomainOfSums, testing::Values(DType::f32, DType::f64));

constexpr int sizes[] = {2, 64, 1000, 5000};
constexpr double edge = 0.999;  // of the largest numbers that are allowed

TEST_P(DomainOfSums, Mean) {
  const DType dtype = GetParam();
  for (const int n : sizes) {
    const double x = edge * largest(dtype) / n;
    expect_all(reduce(full({3, n}, x, dtype), "r n -> r", "mean"), x, "rows " + std::to_string(n));
    expect_all(reduce(full({n, 3}, x, dtype), "n r -> r", "mean"), x,
               "columns " + std::to_string(n));
  }
}

TEST_P(DomainOfSums, Variance) {
  const DType dtype = GetParam();
  for (const int n : sizes) {
    for (const bool in_columns : {false, true}) {
      const std::string what = std::to_string(n) + (in_columns ? " in columns" : " in rows");
      const double d = edge * std::sqrt(largest(dtype) / n);
      const Tensor x = both_signs(3, n, d, in_columns, dtype);
      const auto of = [&](const char* reduction) {
        return in_columns ? reduce(x, "n r -> r", runtime(reduction))
                          : reduce(x, "r n -> r", runtime(reduction));
      };
      expect_all(of("var"), d * d, what);
      expect_all(of("std"), d, what);
      expect_all(of("norm"), d * std::sqrt(n), what);
      // The square roots of M are the end: here it is the sum that overflows, not each square.
      const Tensor beyond = both_signs(3, n, 1.01 * d / edge, in_columns, dtype);
      for (const double value : test::get_values(in_columns ? reduce(beyond, "n r -> r", "var")
                                                            : reduce(beyond, "r n -> r", "var")))
        EXPECT_EQ(value, std::numeric_limits<double>::infinity()) << what;
    }
  }
}

/// Of rows that are ±d in equal numbers the norms are ±1; for a cotangent that is 1 at element 0
/// and 0 elsewhere the gradient at k is (δ_0k - 1/n - y_0 y_k / n) / d, of rms_norm without 1/n.
TEST_P(DomainOfSums, Norms) {
  const DType dtype = GetParam();
  for (const int n : sizes) {
    const double d = edge * std::sqrt(largest(dtype) / n);
    for (const bool is_layer_norm : {false, true}) {
      const std::string what = (is_layer_norm ? "layer_norm " : "rms_norm ") + std::to_string(n);
      const Tensor signs = both_signs(1, n, 1, false, dtype),
                   x = both_signs(1, n, d, false, dtype).requires_grad(true);
      const Tensor y = is_layer_norm ? layer_norm(x, "r [n]") : rms_norm(x, "r [n]");
      expect_all(y.detach() * signs, 1, what);
      Values cotangent(static_cast<std::size_t>(n), 0);
      cotangent[0] = 1;
      reduce(y * from_vector(cotangent, {1, n}).to(dtype), "r n ->", "sum").backward();
      const Values gradient = test::get_values(x.grad()), y_of = test::get_values(signs);
      for (std::size_t k = 0; k < gradient.size(); ++k) {
        const double expected =
            cotangent[k] - (is_layer_norm ? 1.0 / n : 0) - y_of[0] * y_of[k] / n;
        ASSERT_NEAR(gradient[k] * d, expected, 1e-5) << what << " element " << k;
      }
    }
  }
}

}  // namespace
}  // namespace ein
