// Muon beside its definition: Newton-Schulz steps act on singular values alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/optim.hpp>

#include "support/expect_error.hpp"

namespace ein::optim {
namespace {

using Matrix = std::vector<double>;  // row after row

/// rows · diag(values) · columnsᵀ, where rows (n, k) and columns (m, k) are orthonormal.
struct Factors {
  std::int64_t n, m;
  Matrix rows, columns, values;
  Matrix product(const Matrix& of) const {
    Matrix x(static_cast<std::size_t>(n * m));
    const std::size_t k = of.size();
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      for (std::size_t j = 0; j < static_cast<std::size_t>(m); ++j)
        for (std::size_t l = 0; l < k; ++l)
          x[i * static_cast<std::size_t>(m) + j] += rows[i * k + l] * of[l] * columns[j * k + l];
    return x;
  }
};

/// The first k columns of the cosine transform of n points, which are orthonormal.
Matrix cosines(std::int64_t n, std::size_t k) {
  Matrix q;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::size_t l = 0; l < k; ++l)
      q.push_back(std::sqrt((l == 0 ? 1.0 : 2.0) / static_cast<double>(n)) *
                  std::cos(M_PI * (static_cast<double>(i) + 0.5) * static_cast<double>(l) /
                           static_cast<double>(n)));
  return q;
}

Factors factors(std::int64_t n, std::int64_t m, Matrix values) {
  return {n, m, cosines(n, values.size()), cosines(m, values.size()), values};
}

/// What five steps make of singular values.
Matrix stepped(Matrix values, int steps = 5) {
  double norm = 0;
  for (const double s : values) norm += s * s;
  for (double& s : values) {
    s /= std::sqrt(norm);
    for (int step = 0; step < steps; ++step)
      s = 3.4445 * s - 4.7750 * std::pow(s, 3) + 2.0315 * std::pow(s, 5);
  }
  return values;
}

/// The parameter after a step from `p` with this gradient.
Matrix after_step(const Factors& p, const Factors& g, const MuonOptions& options, int steps = 1) {
  const Tensor weight = from_vector(p.product(p.values), {p.n, p.m}).requires_grad(true);
  const Tensor gradient = from_vector(g.product(g.values), {g.n, g.m});
  Muon optimizer({weight}, options);
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    reduce(weight * gradient, "i j ->", Reduction::sum).backward();
    optimizer.step();
  }
  return weight.detach().to_vector<double>();
}

TEST(Muon, AStepIsThePolynomialOfTheSingularValues) {
  for (const auto& [n, m] : {std::pair<std::int64_t, std::int64_t>{4, 4}, {3, 8}, {8, 3}}) {
    const Factors p = factors(n, m, {1, 2, 3}), g = factors(n, m, {5, 0.7, 0.2});
    const Matrix update = g.product(stepped(g.values)), begin = p.product(p.values);
    const double outputs_by_inputs = static_cast<double>(m) / static_cast<double>(n);
    const auto expect = [&](const MuonOptions& options, double scale) {
      const Matrix end = after_step(p, g, options);
      for (std::size_t i = 0; i < end.size(); ++i)
        EXPECT_NEAR(end[i],
                    begin[i] * (1 - options.learning_rate * options.weight_decay) -
                        options.learning_rate * scale * update[i],
                    1e-12)
            << n << 'x' << m;
    };
    expect({.learning_rate = 0.1, .weight_decay = 0}, std::sqrt(std::max(1.0, outputs_by_inputs)));
    expect({.learning_rate = 0.1, .weight_decay = 0.3, .outputs_first = true},
           std::sqrt(std::max(1.0, 1 / outputs_by_inputs)));
    expect({.learning_rate = 0.1, .scale = MuonOptions::Scale::rms_of_adamw},
           0.2 * std::sqrt(static_cast<double>(std::max(n, m))));
  }
}

// The same gradient again and again: the momentum grows, and made orthogonal it is the same.
TEST(Muon, MomentumChangesTheSizeOfAGradientAlone) {
  const Factors p = factors(4, 4, {1, 1, 1}), g = factors(4, 4, {3, 2, 1});
  const Matrix update = g.product(stepped(g.values)), begin = p.product(p.values);
  for (const bool nesterov : {true, false}) {
    const Matrix end =
        after_step(p, g, {.learning_rate = 0.1, .nesterov = nesterov, .weight_decay = 0}, 3);
    for (std::size_t i = 0; i < end.size(); ++i)
      EXPECT_NEAR(end[i], begin[i] - 0.3 * update[i], 1e-12) << nesterov;
  }
}

TEST(Muon, NesterovLooksAhead) {
  const Factors p = factors(3, 3, {1, 1, 1});
  const Matrix values{2, 1, 0.5}, others{0.5, 1, 2};
  for (const bool nesterov : {true, false}) {
    const Tensor weight = from_vector(p.product(p.values), {3, 3}).requires_grad(true);
    Muon optimizer({weight},
                   {.learning_rate = 1, .momentum = 0.9, .nesterov = nesterov, .weight_decay = 0});
    Matrix expected = p.product(p.values), v(3);
    for (const Matrix& g : {values, others}) {
      optimizer.zero_grad();
      reduce(weight * from_vector(p.product(g), {3, 3}), "i j ->", Reduction::sum).backward();
      optimizer.step();
      Matrix u(3);
      for (std::size_t i = 0; i < 3; ++i) {
        v[i] = 0.9 * v[i] + 0.1 * g[i];
        u[i] = nesterov ? 0.9 * v[i] + 0.1 * g[i] : v[i];
      }
      const Matrix update = p.product(stepped(u));
      for (std::size_t i = 0; i < 9; ++i) expected[i] -= update[i];
    }
    const Matrix end = weight.detach().to_vector<double>();
    for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(end[i], expected[i], 1e-12) << nesterov;
  }
}

// The bounds that MuonOptions names, for singular values down to a hundredth of the norm.
TEST(Muon, SingularValuesComeNearOne) {
  for (double s = 0.01; s <= 1; s += 0.001) {
    double x = s;
    for (int step = 0; step < 5; ++step)
      x = 3.4445 * x - 4.7750 * std::pow(x, 3) + 2.0315 * std::pow(x, 5);
    EXPECT_GT(x, 0.65) << s;
    EXPECT_LT(x, 1.21) << s;
  }
}

TEST(Muon, AGradientOfZerosChangesNothing) {
  const Factors p = factors(3, 4, {1, 2, 3}), zero = factors(3, 4, {0, 0, 0});
  const Matrix begin = p.product(p.values), end = after_step(p, zero, {.weight_decay = 0});
  EXPECT_EQ(begin, end);
}

TEST(Muon, MatricesAreWanted) {
  for (const Shape& shape : {Shape{3}, Shape{2, 2, 2}, Shape{}}) {
    const Tensor parameter = ones(shape).requires_grad(true);
    test::expect_error([&] { Muon({parameter}); }, ErrorKind::rank,
                       {"Muon: a parameter has the shape " + shape.to_string(), "AdamW"});
  }
}

}  // namespace
}  // namespace ein::optim
