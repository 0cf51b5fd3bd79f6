// Gradients of linear algebra, first and second, against central differences in f64; of the first
// three orders against jets, also at matrices that are special; and first ones against PyTorch's.
#include <gtest/gtest.h>

#include <cmath>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/linalg.hpp>
#include "support/derivative_orders.hpp"
#include "support/differences.hpp"
#include "support/expect_error.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

using test::Tensors;
using X = const Tensors&;

Tensor identity(std::int64_t n) { return eye(n, DType::f64); }
/// Σ of all elements of all results, each times a number of its own.
Tensor mixed(const Tensors& results) {
  Tensor sum = zeros({}, DType::f64);
  for (const Tensor& x : results) {
    const Tensor factors = cos(arange(x.numel()).to(DType::f64)).view(x.shape());
    sum = sum + reduce(x * factors, "... ->", "sum");
  }
  return sum;
}
Tensor symmetric(const Tensor& x) { return x + rearrange(x, "b i j -> b j i"); }
Tensor positive(const Tensor& x) {
  return einsum(x, x, "b i k, b j k -> b i j") + identity(x.shape()[1]);
}
Tensor of_qr(const Tensor& x) {
  const auto [q, r] = qr(x, "b [n m]");
  return mixed({q, r});
}
Tensor of_svd(const Tensor& x) {
  const auto [u, s, vt] = svd(x, "b [n m]");
  return mixed({u, s, vt});
}
Tensor of_eigh(const Tensor& x) {
  const auto [values, vectors] = eigh(rearrange(symmetric(x), "b i j -> i b j"), "[i] b [j]");
  return mixed({values, vectors});
}

struct Case {
  std::string name;
  std::vector<Shape> shapes;
  test::OfTensors f;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const std::vector<Case> cases{
    {"inverse", {{2, 3, 3}}, [](X x) { return inverse(x[0] + 3 * identity(3), "b [i j]"); }},
    {"inverse_in_another_order",
     {{3, 2, 3}},
     [](X x) { return inverse(x[0] + 3 * rearrange(identity(3), "i j -> i 1 j"), "[j] b [i]"); }},
    {"det", {{2, 3, 3}}, [](X x) { return det(x[0], "b [i j]"); }},
    {"cholesky", {{2, 3, 3}}, [](X x) { return cholesky(positive(x[0]), "b [i j]"); }},
    {"solve",
     {{2, 3, 3}, {2, 3, 2}},
     [](X x) { return solve(x[0] + 3 * identity(3), x[1], "b [n m], b [n] k -> b [m] k"); }},
    {"solve_with_axes_that_one_of_them_lacks",
     {{2, 3, 3}, {2, 3, 2}},
     [](X x) { return solve(x[0] + 3 * identity(3), x[1], "b [n m], k [n] l -> l [m] b k"); }},
    {"solve_one",
     {{2, 2}, {2}},
     [](X x) { return solve(x[0] + 4 * identity(2), x[1], "[n m], [n] -> [m]"); }},
    {"lstsq_of_a_tall_one",
     {{2, 4, 2}, {2, 4, 3}},
     [](X x) { return lstsq(x[0], x[1], "b [n m], b [n] k -> b [m] k"); }},
    {"lstsq_of_a_wide_one",
     {{2, 2, 4}, {2, 3}},
     [](X x) { return lstsq(x[0], x[1], "b [n m], [n] k -> [m] b k"); }},
    {"lstsq_of_a_square_one",
     {{1, 3, 3}, {3}},
     [](X x) { return lstsq(x[0] + 3 * identity(3), x[1], "b [n m], [n] -> b [m]"); }},
    {"qr_of_a_tall_one", {{2, 4, 2}}, [](X x) { return of_qr(x[0]); }},
    {"qr_of_a_square_one", {{2, 3, 3}}, [](X x) { return of_qr(x[0]); }},
    {"qr_of_a_wide_one", {{2, 2, 4}}, [](X x) { return of_qr(x[0]); }},
    {"svd_of_a_tall_one", {{2, 4, 2}}, [](X x) { return of_svd(x[0]); }},
    {"svd_of_a_square_one", {{1, 3, 3}}, [](X x) { return of_svd(x[0]); }},
    {"svd_of_a_wide_one", {{2, 2, 4}}, [](X x) { return of_svd(x[0]); }},
    {"eigh", {{3, 3, 3}}, [](X x) { return of_eigh(x[0]); }},
};

class LinalgGradient : public testing::TestWithParam<Case> {};

TEST_P(LinalgGradient, AgreesWithDifferences) {
  const Case& c = GetParam();
  const std::uint64_t seed = 29;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Tensors inputs;
  for (const Shape& shape : c.shapes) inputs.push_back(test::normal_values(random, shape));
  test::expect_gradients(c.f, inputs, random);
}

TEST_P(LinalgGradient, IsDifferentiableAgain) {
  const Case& c = GetParam();
  const std::uint64_t seed = 31;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Tensors inputs;
  for (const Shape& shape : c.shapes) inputs.push_back(test::normal_values(random, shape));
  const auto slope = [&](X x) {
    const EnableGrad enabled;
    Tensors leaves;
    for (const Tensor& each : x)
      leaves.push_back(each.requires_grad() ? each : each.detach().requires_grad(true));
    return mixed(gradients(mixed({c.f(leaves)}), leaves, true));
  };
  test::expect_gradients(slope, inputs, random);
}

/// Every element of every order is compared.
void expect_orders(const test::OfTensors& f, const Tensors& inputs, std::mt19937_64& random) {
  std::int64_t elements = 0;
  for (const Tensor& x : inputs) elements += x.numel();
  const test::OrdersCompared found = test::compare_orders(f, inputs, random);
  EXPECT_EQ(found.wrong, "");
  EXPECT_EQ(found.elements, 3 * elements);
}

TEST_P(LinalgGradient, OfEveryOrder) {
  const Case& c = GetParam();
  test::for_seeds(4, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Tensors inputs;
    for (const Shape& shape : c.shapes) inputs.push_back(test::normal_values(random, shape));
    expect_orders(c.f, inputs, random);
  });
}

TEST_P(LinalgGradient, IsTheSameCompiled) {
  const Case& c = GetParam();
  std::mt19937_64 random(37);
  Tensors inputs;
  for (const Shape& shape : c.shapes) inputs.push_back(test::normal_values(random, shape));
  const auto run = [&](const Tensors& x) {
    Tensors leaves;
    for (const Tensor& each : x) leaves.push_back(each.detach().requires_grad(true));
    const Tensor result = mixed({c.f(leaves)});
    Tensors all = gradients(result, leaves);
    all.push_back(result.detach());
    return all;
  };
  const Tensors eager = run(inputs);
  const Tensors compiled = inputs.size() == 1
                               ? compile([&](const Tensor& a) { return run({a}); })(inputs[0])
                               : compile([&](const Tensor& a, const Tensor& b) {
                                   return run({a, b});
                                 })(inputs[0], inputs[1]);
  ASSERT_EQ(compiled.size(), eager.size());
  for (std::size_t i = 0; i < eager.size(); ++i)
    EXPECT_TRUE(all_close(compiled[i], eager[i], 1e-11, 1e-12))
        << to_string(compiled[i]) << "\nnot " << to_string(eager[i]);
}

/// Matrices of which parts are 0, or lie where a factor has them already.
struct Special {
  const char* name;
  Tensor matrix;
  bool has_equal_values;  // singular values
};
std::vector<Special> special_matrices() {
  const auto of = [](const std::vector<double>& elements, std::int64_t n, std::int64_t m) {
    return from_vector(elements, {1, n, m});
  };
  return {{"the identity", of({1, 0, 0, 0, 1, 0, 0, 0, 1}, 3, 3), true},
          {"a multiple of the identity", of({-2, 0, 0, 0, -2, 0, 0, 0, -2}, 3, 3), true},
          {"a diagonal one", of({2, 0, 0, 0, -1, 0, 0, 0, 3}, 3, 3), false},
          {"a diagonal one with equal values", of({2, 0, 0, 0, 3, 0, 0, 0, 2}, 3, 3), true},
          {"a permuted diagonal one", of({0, 2, 0, 0, 0, 1, 3, 0, 0}, 3, 3), false},
          {"a permutation", of({0, 1, 0, 0, 0, 1, 1, 0, 0}, 3, 3), true},
          {"a lower triangle", of({1, 0, 0, 2, 1, 0, -1, 3, 2}, 3, 3), false},
          {"an upper triangle", of({1, 2, -1, 0, 1, 3, 0, 0, 2}, 3, 3), false},
          {"a tall diagonal one", of({1, 0, 0, 2, 0, 0}, 3, 2), false},
          {"a tall one of units", of({1, 0, 0, 1, 0, 0}, 3, 2), true},
          {"a wide diagonal one", of({1, 0, 0, 0, 2, 0}, 2, 3), false},
          {"a wide one of units", of({1, 0, 0, 0, 1, 0}, 2, 3), true}};
}

TEST(LinalgGradients, OfEveryOrderAtSpecialMatrices) {
  test::for_seeds(2, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (const auto& [name, matrix, has_equal_values] : special_matrices()) {
      SCOPED_TRACE(name);
      const std::int64_t n = matrix.shape()[1], m = matrix.shape()[2];
      const Tensor right = test::normal_values(random, {1, n, 2});
      const auto expect = [&](const char* function, const test::OfTensors& f,
                              const Tensors& inputs) {
        SCOPED_TRACE(function);
        expect_orders(f, inputs, random);
      };
      expect("lstsq", [](X x) { return lstsq(x[0], x[1], "b [n m], b [n] k -> b [m] k"); },
             {matrix, right});
      expect("qr", [](X x) { return of_qr(x[0]); }, {matrix});
      if (!has_equal_values) expect("svd", [](X x) { return of_svd(x[0]); }, {matrix});
      if (n != m) continue;
      expect("inverse", [](X x) { return inverse(x[0], "b [i j]"); }, {matrix});
      expect("det", [](X x) { return det(x[0], "b [i j]"); }, {matrix});
      expect("solve", [](X x) { return solve(x[0], x[1], "b [n m], b [n] k -> b [m] k"); },
             {matrix, right});
      expect("cholesky", [](X x) { return cholesky(positive(x[0]), "b [i j]"); }, {matrix});
      if (!has_equal_values) expect("eigh", [](X x) { return of_eigh(x[0]); }, {matrix});
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, LinalgGradient, testing::ValuesIn(cases),
                         [](const auto& info) { return info.param.name; });

/// sin(1 + 3 i + 5 j)
Tensor values(std::int64_t n, std::int64_t m) {
  const Tensor i = arange(n).to(DType::f64).view({n, 1}), j = arange(m).to(DType::f64).view({1, m});
  return sin(3.0 * i + 5.0 * j + 1.0);
}
/// Σ of all elements of all results, squared and each times a number of its own.
Tensor squares(const Tensors& results) {
  Tensors squared;
  for (const Tensor& x : results) squared.push_back(x * x);
  return mixed(squared);
}

TEST(LinalgGradients, ArePyTorchs) {
  const Tensor b = values(3, 2) + 0.5;
  const auto gram = [](const Tensor& x) {
    return einsum(x, x, "i k, j k -> i j") + identity(x.shape()[0]);
  };
  const auto of_qr = [](const Tensor& x) {
    const auto [q, r] = qr(x, "[n m]");
    return Tensors{q, r};
  };
  const auto of_svd = [](const Tensor& x) {
    const auto [u, s, vt] = svd(x, "[n m]");
    return Tensors{u, s, vt};
  };
  const struct {
    const char* name;
    std::int64_t n, m;
    std::function<Tensors(const Tensor&)> f;
    std::vector<double> gradient;  // by PyTorch 2.15: python3 tests/peers/linalg_gradients.py
  } table[] = {
      {"inverse",
       3,
       3,
       [](const Tensor& x) { return Tensors{inverse(x + 3 * identity(3), "[i j]")}; },
       {-0.0275325910876, -0.00425149301595, 0.0167250118419, 0.013930768979, 0.0269710722497,
        0.0160376339768, -0.00116500116657, -0.0303247737399, 0.0203835149167}},
      {"det",
       3,
       3,
       [](const Tensor& x) { return Tensors{det(x + 3 * identity(3), "[i j]")}; },
       {449.034208506, 131.555131542, -110.085480446, 66.3393280691, 509.049046558, 112.605513774,
        188.027623349, -182.828131174, 773.395247002}},
      {"cholesky",
       3,
       3,
       [&](const Tensor& x) { return Tensors{cholesky(gram(x), "[i j]")}; },
       {1.66598190862, -0.728299518491, -2.0791639748, 1.29796357838, -0.463427292683,
        -1.56087717568, 1.08008983576, -0.377501390383, -1.29425557458}},
      {"solve",
       3,
       3,
       [&](const Tensor& x) {
         return Tensors{solve(x + 3 * identity(3), b, "[n m], [n] k -> [m] k")};
       },
       {-0.114768408651, 0.0291166287418, -0.103547616888, 0.00305337731254, 0.0441419261367,
        -0.00454962100971, 0.0559080541676, -0.0329351647196, 0.0534913830658}},
      {"lstsq",
       3,
       2,
       [&](const Tensor& x) { return Tensors{lstsq(x, b, "[n m], [n] k -> [m] k")}; },
       {-5.0582563894, 2.33426223552, -0.102034925704, -3.43314159573, 2.24333202745,
        -6.77646865417}},
      {"qr",
       3,
       2,
       of_qr,
       {2.16307806571, -0.773094740899, -1.05806025111, 0.45317690986, 1.22376862073,
        0.0326674972886}},
      {"qr of a wide one",
       2,
       3,
       of_qr,
       {1.61320273299, -0.492870611273, 0.89577579126, -1.59114641587, 0.23304327291,
        -0.75388289007}},
      {"svd",
       3,
       2,
       of_svd,
       {2.34816322478, -0.785760650442, -1.027287191, 1.04154109235, 1.16251514684,
        -0.531740490003}},
      {"svd of a wide one",
       2,
       3,
       of_svd,
       {1.50570579654, -0.287082246905, -2.19688246365, -2.55068314799, 1.07658025736,
        1.10108321903}},
      {"eigh",
       3,
       3,
       [](const Tensor& x) {
         const auto [values, vectors] = eigh(x + rearrange(x, "i j -> j i"), "[i j]");
         return Tensors{values, vectors};
       },
       {-3.35258117417, 1.79849396581, 0.0310699066089, 1.79849396581, -0.497636143607,
        0.866918369569, 0.0310699066089, 0.866918369569, -7.91499664796}},
  };
  for (const auto& row : table) {
    const Tensor x = values(row.n, row.m).requires_grad(true);
    squares(row.f(x)).backward();
    const std::vector<double> found = x.grad().to_vector<double>();
    ASSERT_EQ(found.size(), row.gradient.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], row.gradient[i], 1e-9 * (1 + std::abs(row.gradient[i])))
          << row.name << ", element " << i;
  }
}

TEST(LinalgGradients, OfEqualEigenvaluesAreFinite) {
  // Of the eigenvalues alone, whatever their vectors.
  const Tensor x = identity(3).requires_grad(true);
  reduce(eigh(x, "[i j]").values, "i ->", "sum").backward();
  EXPECT_EQ(x.grad().to_vector<double>(), identity(3).to_vector<double>());
  const Tensor y = identity(3).requires_grad(true);
  reduce(svd(y, "[i j]").s, "r ->", "sum").backward();
  EXPECT_TRUE(all_close(y.grad(), identity(3)));
}

TEST(LinalgGradients, OfASingularDeterminantIsAnError) {
  const Tensor x = zeros({2, 2, 2}, DType::f64).requires_grad(true);
  const Tensor y = reduce(det(x, "b [i j]"), "b ->", "sum");
  EXPECT_EQ(y.item(), 0);
  test::expect_error([&] { y.backward(); }, ErrorKind::value,
                     {"inverse: the matrix at b = 0 is singular"});
}

}  // namespace
}  // namespace ein
