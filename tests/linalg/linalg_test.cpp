// Linear algebra along named axes: random matrices of random batches in random order of axes,
// against the identities that define the functions, and plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include <Eigen/Core>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/linalg.hpp>
#include "cost/scope.hpp"
#include "linalg/reference.hpp"
#include "support/expect_error.hpp"
#include "support/one_op.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

using test::expect_error;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A batch of matrices and the way in which their axes are written: "b c [n m]" in some order.
struct Batch {
  std::vector<std::int64_t> sizes;  // of the axes of the batch
  std::int64_t rows = 0, columns = 0;
  std::vector<Matrix> matrices;
  Tensor tensor{};      // in the order of the pattern
  std::string pattern;  // of the axes, with brackets
};

class Random {
 public:
  Random(unsigned seed, DType dtype) : random_(seed), dtype_(dtype) {}

  std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }
  std::int64_t some_size() {
    constexpr std::int64_t sizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 18};
    return sizes[below(std::size(sizes))];
  }
  std::vector<std::int64_t> some_batch() {
    std::vector<std::int64_t> sizes;
    for (std::size_t axes = below(3); axes > 0; --axes)
      sizes.push_back(static_cast<std::int64_t>(below(8) == 0 ? 0 : 1 + below(3)));
    return sizes;
  }
  /// As the dtype holds it.
  Matrix some_matrix(std::int64_t rows, std::int64_t columns) {
    std::normal_distribution<double> normal;
    Matrix m(rows, columns);
    for (auto& x : m.reshaped()) x = rounded(normal(random_));
    return m;
  }
  double rounded(double x) const {
    return dtype_ == DType::f32 ? static_cast<double>(static_cast<float>(x)) : x;
  }

  template <class Make>
  Batch batch(const std::vector<std::int64_t>& sizes, std::int64_t rows, std::int64_t columns,
              const Make& make) {
    Batch batch{sizes, rows, columns, {}, {}, {}};
    std::vector<double> elements;
    for (std::int64_t i = count(sizes); i > 0; --i) {
      batch.matrices.push_back(make());
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) elements.push_back(batch.matrices.back()(r, c));
      }
    }
    std::vector<std::string> names = names_of(sizes.size());
    names.insert(names.end(), {"[n]", "[m]"});
    Shape shape(sizes);
    shape.push_back(rows);
    shape.push_back(columns);
    // Rows stay before columns, which the first in brackets are.
    do {
      std::shuffle(names.begin(), names.end(), random_);
    } while (std::find(names.begin(), names.end(), "[n]") >
             std::find(names.begin(), names.end(), "[m]"));
    batch.pattern = joined(names);
    batch.tensor =
        in_order(from_vector(elements, shape).to(dtype_), joined(names_of(sizes.size())) + "n m",
                 without_brackets(batch.pattern));
    return batch;
  }

  static std::int64_t count(const std::vector<std::int64_t>& sizes) {
    std::int64_t n = 1;
    for (const std::int64_t size : sizes) n *= size;
    return n;
  }
  static std::vector<std::string> names_of(std::size_t axes) {
    std::vector<std::string> names;
    for (std::size_t a = 0; a < axes; ++a) names.push_back("b" + std::to_string(a));
    return names;
  }
  static std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += name + " ";
    return text;
  }
  static std::string without_brackets(std::string text) {
    std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
    return text;
  }
  static Tensor in_order(const Tensor& x, const std::string& from, const std::string& to) {
    return rearrange(x, runtime(from + "-> " + to));
  }

 private:
  std::mt19937 random_;
  DType dtype_;
};

/// `text` with other names for rows and columns; an empty name leaves out.
std::string renamed(const std::string& text, const std::string& rows, const std::string& columns) {
  std::string result;
  std::string word;
  for (const char c : text + " ") {
    if (c != ' ') {
      word += c;
      continue;
    }
    word = word == "n" ? rows : word == "m" ? columns : word;
    if (!word.empty()) result += word + " ";
    word.clear();
  }
  return result;
}

/// The matrices of a result whose axes are those of the batch in the order of its pattern, with
/// these names for rows and columns.
std::vector<Matrix> matrices_of(const Tensor& x, const Batch& like, const std::string& rows,
                                const std::string& columns) {
  const std::string written = renamed(Random::without_brackets(like.pattern), rows, columns);
  const std::string wanted = Random::joined(Random::names_of(like.sizes.size())) + rows +
                             (rows.empty() ? "" : " ") + columns;
  const Tensor ordered = Random::in_order(x.to(DType::f64), written, wanted);
  const std::vector<double> elements = ordered.to_vector<double>();
  const auto batch_axes = like.sizes.size();
  std::int64_t n = 1, m = 1;
  if (!rows.empty()) n = ordered.shape()[batch_axes];
  if (!columns.empty()) m = ordered.shape()[ordered.rank() - 1];
  std::vector<Matrix> matrices;
  for (std::int64_t i = 0; i < Random::count(like.sizes); ++i)
    matrices.push_back(Eigen::Map<const Matrix>(elements.data() + i * n * m, n, m));
  return matrices;
}

double tolerance(DType dtype, std::int64_t n) {
  return (dtype == DType::f32 ? 3e-6 : 1e-12) * static_cast<double>(n + 1);
}

void expect_near(const Matrix& a, const Matrix& b, double within, const std::string& what) {
  ASSERT_EQ(a.rows(), b.rows()) << what;
  ASSERT_EQ(a.cols(), b.cols()) << what;
  if (a.size() == 0) return;
  EXPECT_LE((a - b).cwiseAbs().maxCoeff(), within * (1 + b.cwiseAbs().maxCoeff())) << what;
}
Matrix identity(std::int64_t n) { return Matrix::Identity(n, n); }

/// Calls check(random, dtype) for many seeds and both dtypes.
template <class Check>
void for_random(const Check& check) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    SCOPED_TRACE(std::string(name(dtype)));
    test::for_seeds(40, [&](unsigned seed) {
      Random random(seed, dtype);
      check(random, dtype);
    });
  }
}

/// By plain loops, in extended precision.
std::vector<double> reference_of(MatrixFunction function, const Matrix& a,
                                 const Matrix& b = Matrix(0, 0)) {
  const auto elements = [](const Matrix& m) {
    return std::vector<double>(m.data(), m.data() + m.size());
  };
  return linalg::reference(function, {a.rows(), a.cols(), b.cols()}, elements(a), elements(b));
}

/// Far from singular.
Matrix regular(Random& random, std::int64_t n) {
  Matrix m = random.some_matrix(n, n) * 0.3;
  m += 2 * std::sqrt(static_cast<double>(n)) * identity(n);
  for (auto& x : m.reshaped()) x = random.rounded(x);
  return m;
}
Matrix symmetric(Random& random, std::int64_t n) {
  const Matrix m = random.some_matrix(n, n);
  Matrix sum = m + m.transpose();
  for (auto& x : sum.reshaped()) x = random.rounded(x);
  return sum;
}

TEST(Linalg, Inverse) {
  for_random([](Random& random, DType dtype) {
    const std::int64_t n = random.some_size();
    const Batch m = random.batch(random.some_batch(), n, n, [&] { return regular(random, n); });
    const Tensor y = inverse(m.tensor, runtime(m.pattern));
    EXPECT_EQ(y.dtype(), dtype);
    const auto found = matrices_of(y, m, "m", "n");
    for (std::size_t i = 0; i < found.size(); ++i) {
      // Its rows lie where the columns of the matrix did.
      expect_near(m.matrices[i] * found[i], identity(n), tolerance(dtype, n), m.pattern);
    }
  });
}

TEST(Linalg, Det) {
  for_random([](Random& random, DType dtype) {
    const std::int64_t n = std::min<std::int64_t>(random.some_size(), 7);
    const Batch m =
        random.batch(random.some_batch(), n, n, [&] { return random.some_matrix(n, n); });
    const auto found = matrices_of(det(m.tensor, runtime(m.pattern)), m, "", "");
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double want = reference_of(MatrixFunction::det, m.matrices[i])[0];
      EXPECT_NEAR(found[i](0, 0), want, tolerance(dtype, n) * (1 + std::abs(want)) * 10);
    }
  });
}

TEST(Linalg, Cholesky) {
  for_random([](Random& random, DType dtype) {
    const std::int64_t n = random.some_size();
    const Batch m = random.batch(random.some_batch(), n, n, [&] {
      const Matrix x = random.some_matrix(n, n);
      Matrix product = x * x.transpose() + identity(n);
      for (auto& element : product.reshaped()) element = random.rounded(element);
      return product;
    });
    const auto found = matrices_of(cholesky(m.tensor, runtime(m.pattern)), m, "n", "m");
    for (std::size_t i = 0; i < found.size(); ++i) {
      expect_near(found[i] * found[i].transpose(), m.matrices[i], tolerance(dtype, n), m.pattern);
      for (std::int64_t r = 0; r < n; ++r) {
        EXPECT_GT(found[i](r, r), 0);
        for (std::int64_t c = r + 1; c < n; ++c) EXPECT_EQ(found[i](r, c), 0);
      }
    }
  });
}

TEST(Linalg, Qr) {
  for_random([](Random& random, DType dtype) {
    const std::int64_t n = random.some_size(), m = random.some_size(), r = std::min(n, m);
    const Batch x =
        random.batch(random.some_batch(), n, m, [&] { return random.some_matrix(n, m); });
    const auto [q, upper] = qr(x.tensor, runtime(x.pattern));
    const auto qs = matrices_of(q, x, "n", "r"), rs = matrices_of(upper, x, "r", "m");
    for (std::size_t i = 0; i < qs.size(); ++i) {
      ASSERT_EQ(qs[i].cols(), r);
      expect_near(qs[i] * rs[i], x.matrices[i], tolerance(dtype, n + m), x.pattern);
      expect_near(qs[i].transpose() * qs[i], identity(r), tolerance(dtype, n + m), x.pattern);
      for (std::int64_t k = 0; k < r; ++k) {
        EXPECT_GE(rs[i](k, k), 0);
        for (std::int64_t c = 0; c < k; ++c) EXPECT_EQ(rs[i](k, c), 0);
      }
    }
  });
}

/// Whether in each column the element of the greatest magnitude is positive.
void expect_signs(const Matrix& columns) {
  for (std::int64_t k = 0; k < columns.cols(); ++k) {
    Eigen::Index at = 0;
    columns.col(k).cwiseAbs().maxCoeff(&at);
    EXPECT_GT(columns(at, k), 0) << columns;
  }
}

TEST(Linalg, Svd) {
  for_random([](Random& random, DType dtype) {
    const std::int64_t n = random.some_size(), m = random.some_size(), r = std::min(n, m);
    const Batch x =
        random.batch(random.some_batch(), n, m, [&] { return random.some_matrix(n, m); });
    const auto [u, s, vt] = svd(x.tensor, runtime(x.pattern));
    const auto us = matrices_of(u, x, "n", "r"), vs = matrices_of(vt, x, "r", "m");
    // The values have the place of the first axis in brackets.
    const auto ss = matrices_of(s, x, "r", "");
    for (std::size_t i = 0; i < us.size(); ++i) {
      const Matrix values = ss[i].reshaped<Eigen::RowMajor>(r, 1);
      const Matrix product = us[i] * values.reshaped().asDiagonal() * vs[i];
      expect_near(product, x.matrices[i], tolerance(dtype, n + m), x.pattern);
      expect_near(us[i].transpose() * us[i], identity(r), tolerance(dtype, n + m), x.pattern);
      expect_near(vs[i] * vs[i].transpose(), identity(r), tolerance(dtype, n + m), x.pattern);
      for (std::int64_t k = 1; k < r; ++k) EXPECT_LE(values(k, 0), values(k - 1, 0));
      for (std::int64_t k = 0; k < r; ++k) EXPECT_GE(values(k, 0), 0);
      if (dtype == DType::f64) expect_signs(us[i]);
    }
  });
}

TEST(Linalg, Eigh) {
  for_random([](Random& random, DType dtype) {
    const std::int64_t n = random.some_size();
    const Batch m = random.batch(random.some_batch(), n, n, [&] { return symmetric(random, n); });
    const auto [values, vectors] = eigh(m.tensor, runtime(m.pattern));
    const auto vs = matrices_of(vectors, m, "n", "m"), ls = matrices_of(values, m, "m", "");
    for (std::size_t i = 0; i < vs.size(); ++i) {
      const Matrix l = ls[i].reshaped<Eigen::RowMajor>(n, 1);
      expect_near(vs[i] * l.reshaped().asDiagonal() * vs[i].transpose(), m.matrices[i],
                  tolerance(dtype, n), m.pattern);
      expect_near(vs[i].transpose() * vs[i], identity(n), tolerance(dtype, n), m.pattern);
      for (std::int64_t k = 1; k < n; ++k) EXPECT_GE(l(k, 0), l(k - 1, 0));
      if (dtype == DType::f64) expect_signs(vs[i]);
    }
  });
}

/// solve and lstsq of a batch of matrices and of right-hand sides that lack some axes of the batch
/// and have some of their own.
template <class Make, class Call, class Check>
void check_two(Random& random, std::int64_t n, std::int64_t m, const Make& make, const Call& call,
               const Check& check) {
  const std::vector<std::int64_t> sizes = random.some_batch();
  const Batch a = random.batch(sizes, n, m, make);
  std::vector<std::string> names;
  Shape shape;
  std::vector<std::size_t> has;  // the axes of the batch that b has
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (random.below(3) == 0) continue;
    has.push_back(k);
    names.push_back("b" + std::to_string(k));
    shape.push_back(sizes[k]);
  }
  const std::size_t right_axes = random.below(3);
  std::int64_t right = 1;
  for (std::size_t k = 0; k < right_axes; ++k) {
    names.push_back("k" + std::to_string(k));
    shape.push_back(static_cast<std::int64_t>(1 + random.below(3)));
    right *= shape[shape.rank() - 1];
  }
  // n comes before the right-hand sides in `canonical`.
  std::string canonical, out = Random::joined(Random::names_of(sizes.size())) + "[m] ";
  std::vector<std::string> mixed{"[n]"};
  for (const std::string& each : names) {
    if (each[0] == 'b') canonical += each + " ";
    mixed.push_back(each);
  }
  canonical += "n ";
  Shape ordered;
  for (std::size_t k = 0; k < has.size(); ++k) ordered.push_back(shape[k]);
  ordered.push_back(n);
  for (std::size_t k = has.size(); k < names.size(); ++k) {
    canonical += names[k] + " ";
    out += names[k] + " ";
    ordered.push_back(shape[k]);
  }
  std::rotate(mixed.begin(),
              mixed.begin() + static_cast<std::ptrdiff_t>(random.below(mixed.size())), mixed.end());
  const std::string b_pattern = Random::joined(mixed);
  const std::int64_t b_count = numel(Shape(std::span(ordered.begin(), has.size())));
  std::vector<Matrix> bs;
  std::vector<double> elements;
  for (std::int64_t i = 0; i < b_count; ++i) {
    bs.push_back(random.some_matrix(n, right));
    for (std::int64_t r = 0; r < n; ++r) {
      for (std::int64_t c = 0; c < right; ++c) elements.push_back(bs.back()(r, c));
    }
  }
  const Tensor b = Random::in_order(from_vector(elements, ordered).to(a.tensor.dtype()), canonical,
                                    Random::without_brackets(b_pattern));
  const std::string pattern = a.pattern + ", " + b_pattern + "-> " + out;
  SCOPED_TRACE(pattern);
  const Tensor x = call(a.tensor, b, pattern);
  EXPECT_EQ(x.dtype(), a.tensor.dtype());
  const std::vector<double> found = x.to(DType::f64).to_vector<double>();
  for (std::size_t i = 0; i < a.matrices.size(); ++i) {
    std::size_t of_b = 0, rest = i, step = a.matrices.size();
    std::size_t next = 0;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      step /= static_cast<std::size_t>(sizes[k]);
      const std::size_t index = rest / step;
      rest %= step;
      if (next < has.size() && has[next] == k) {
        of_b = of_b * static_cast<std::size_t>(sizes[k]) + index;
        ++next;
      }
    }
    const Matrix of_x =
        Eigen::Map<const Matrix>(found.data() + static_cast<std::int64_t>(i) * m * right, m, right);
    check(a.matrices[i], bs[of_b], of_x);
  }
}

TEST(Linalg, Solve) {
  for_random([](Random& random, DType dtype) {
    const std::int64_t n = random.some_size();
    check_two(
        random, n, n, [&] { return regular(random, n); },
        [](const Tensor& a, const Tensor& b, const std::string& pattern) {
          return solve(a, b, runtime(pattern));
        },
        [&](const Matrix& a, const Matrix& b, const Matrix& x) {
          expect_near(a * x, b, 4 * tolerance(dtype, n), "a x = b");
        });
  });
}

TEST(Linalg, LeastSquares) {
  for_random([](Random& random, DType dtype) {
    const std::int64_t n = random.some_size(), m = random.some_size();
    const bool is_deficient = random.below(3) == 0 && n > 1 && m > 1 && dtype == DType::f64;
    check_two(
        random, n, m,
        [&]() -> Matrix {
          if (is_deficient) return random.some_matrix(n, 1) * random.some_matrix(1, m);
          return random.some_matrix(n, m);
        },
        [](const Tensor& a, const Tensor& b, const std::string& pattern) {
          return lstsq(a, b, runtime(pattern));
        },
        [&](const Matrix& a, const Matrix& b, const Matrix& x) {
          if (n == 0 || m == 0) return expect_near(x, Matrix::Zero(m, b.cols()), 0, "nothing");
          const std::vector<double> elements = reference_of(MatrixFunction::lstsq, a, b);
          const Matrix want = Eigen::Map<const Matrix>(elements.data(), m, b.cols());
          const std::int64_t r = is_deficient ? 1 : std::min(n, m);
          const std::vector<double> svd = reference_of(MatrixFunction::svd, a);
          const auto first = static_cast<std::size_t>(n * std::min(n, m));
          const double condition = svd[first] / svd[first + static_cast<std::size_t>(r) - 1];
          expect_near(x, want, tolerance(dtype, n + m) * condition * condition, "the least norm");
        });
  });
}

TEST(Linalg, ByHand) {
  const Tensor m = from_vector<double>({2, 1, 1, 1}, {2, 2});
  EXPECT_EQ(inverse(m, "[i j]").to_vector<double>(), (std::vector<double>{1, -1, -1, 2}));
  EXPECT_EQ(det(m, "[i j]").item(), 1);
  EXPECT_EQ(solve(m, from_vector<double>({3, 2}, {2}), "[n m], [n] -> [m]").to_vector<double>(),
            (std::vector<double>{1, 1}));
  const Tensor d = from_vector<float>({4, 0, 0, 9}, {2, 2});
  EXPECT_EQ(cholesky(d, "[i j]").to_vector<float>(), (std::vector<float>{2, 0, 0, 3}));
  EXPECT_EQ(eigh(d, "[i j]").values.to_vector<float>(), (std::vector<float>{4, 9}));
  EXPECT_EQ(svd(d, "[i j]").s.to_vector<float>(), (std::vector<float>{9, 4}));
  // Only the lower triangle is read.
  const Tensor lower = from_vector<double>({4, 99, 2, 5}, {2, 2});
  EXPECT_EQ(cholesky(lower, "[i j]").to_vector<double>(), (std::vector<double>{2, 0, 1, 2}));
  // The axes of an inverse and of a determinant.
  const Tensor batch = ones({3, 2, 2}) + from_vector<float>({1, 0, 0, 1}, {2, 2}).to(DType::f32);
  EXPECT_EQ(inverse(batch, "b [i j]").shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(inverse(rearrange(batch, "b i j -> i b j"), "[i] b [j]").shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(det(batch, "... [i j]").shape(), (Shape{3}));
  EXPECT_EQ(qr(ones({5, 4, 3}), "[n] b [m]").q.shape(), (Shape{5, 4, 3}));
  EXPECT_EQ(svd(ones({5, 4, 3}), "[n] b [m]").s.shape(), (Shape{3, 4}));
}

TEST(Linalg, SizesOfNothing) {
  EXPECT_EQ(det(zeros({3, 0, 0}), "b [i j]").to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(inverse(zeros({0, 2, 2}), "b [i j]").shape(), (Shape{0, 2, 2}));
  EXPECT_EQ(inverse(zeros({2, 0, 0}), "b [i j]").shape(), (Shape{2, 0, 0}));
  EXPECT_EQ(solve(zeros({0, 0}), zeros({0, 3}), "[n m], [n] k -> [m] k").shape(), (Shape{0, 3}));
  EXPECT_EQ(lstsq(zeros({0, 2}), zeros({0, 3}), "[n m], [n] k -> [m] k").to_vector<float>(),
            std::vector<float>(6, 0));
  const auto [u, s, vt] = svd(zeros({4, 0}), "[n m]");
  EXPECT_EQ(u.shape(), (Shape{4, 0}));
  EXPECT_EQ(s.shape(), (Shape{0}));
  EXPECT_EQ(vt.shape(), (Shape{0, 0}));
  EXPECT_EQ(eigh(from_vector<double>({7}, {1, 1}), "[i j]").vectors.item(), 1);
}

TEST(Linalg, ErrorsNameTheMatrix) {
  std::vector<double> elements(2 * 3 * 4, 0);
  for (std::size_t i = 0; i < elements.size(); i += 4) elements[i] = elements[i + 3] = 1;
  elements[4 * 4] = 0;  // of matrix 4, b = 1 and h = 1
  elements[5 * 4] = -1;
  const Tensor x = from_vector(elements, {2, 3, 2, 2});
  expect_error([&] { inverse(x, "b h [i j]"); }, ErrorKind::value,
               {"inverse: the matrix at b = 1, h = 1 is singular"});
  expect_error([&] { cholesky(x, "b h [i j]"); }, ErrorKind::value,
               {"cholesky: the matrix at b = 1, h = 1 is not positive definite"});
  expect_error([&] { solve(x, ones({2}, DType::f64), "b h [n m], [n] -> b h [m]"); },
               ErrorKind::value, {"solve: the matrix at b = 1, h = 1 is singular"});
  expect_error(
      [&] {
        inverse(zeros({2, 2}), "[i j]");
      },
      ErrorKind::value, {"inverse: the matrix is singular"});
  elements[4 * 3 + 1] = elements[4 * 3 + 2] = nan;
  const Tensor y = from_vector(elements, {6, 2, 2});
  expect_error([&] { eigh(y, "b [i j]"); }, ErrorKind::value,
               {"eigh: the matrix at b = 3 has elements that are not finite"});
  expect_error([&] { svd(y, "b [i j]"); }, ErrorKind::value, {"svd: the matrix at b = 3 has"});
  expect_error([&] { cholesky(y, "b [i j]"); }, ErrorKind::value,
               {"cholesky: the matrix at b = 3"});
  expect_error([&] { lstsq(y, ones({2}, DType::f64), "b [n m], [n] -> b [m]"); }, ErrorKind::value,
               {"lstsq: the matrix at b = 3 has elements"});
  // NaN goes on where nothing must be decided.
  EXPECT_TRUE(std::isnan(det(y, "b [i j]").to_vector<double>()[3]));
  // Equal calls that differ in the names of their axes.
  auto f = compile([](const Tensor& a, const Tensor& b) {
    return reduce(inverse(a, "first [i j]"), "b i j ->", "sum") +
           reduce(inverse(b, "second [i j]"), "b i j ->", "sum");
  });
  const Tensor good = ones({2, 1, 1}), bad = zeros({2, 1, 1});
  expect_error([&] { f(bad, good); }, ErrorKind::value, {"the matrix at first = 0 is singular"});
  expect_error([&] { f(good, bad); }, ErrorKind::value, {"the matrix at second = 0 is singular"});
}

TEST(Linalg, ErrorsOfCalls) {
  expect_error(
      [] {
        inverse(ones({2, 3, 4}), "b [i j]");
      },
      ErrorKind::size,
      {"inverse: a square matrix is wanted, this one is 3 × 4", "b [i j]\n", "   ^ ^", "   3 4"});
  expect_error(
      [] {
        solve(ones({3, 4}), ones({3}), "[n m], [n] -> [m]");
      },
      ErrorKind::size,
      {"solve: a square matrix is wanted, this one is 3 × 4", "lstsq takes any matrix"});
  expect_error(
      [] {
        solve(ones({3, 3}), ones({4}), "[n m], [n] -> [m]");
      },
      ErrorKind::size, {"'n'", "3", "4"});
  expect_error(
      [] {
        det(ones({3, 3}, DType::bf16), "[i j]");
      },
      ErrorKind::dtype,
      {"det: matrices are of f32 or f64, operand 1 holds bf16", "x.to(ein::DType::f64)"});
  expect_error([] { det(ones({3, 3}, DType::i64), "[i j]"); }, ErrorKind::dtype, {"holds i64"});
  expect_error(
      [] {
        solve(ones({3, 3}), ones({3}, DType::f64), "[n m], [n] -> [m]");
      },
      ErrorKind::dtype, {"solve: the operands have different dtypes, f32 and f64"});
  expect_error([] { inverse(ones({3, 3, 3}), "[i j]"); }, ErrorKind::rank, {});
}

TEST(Linalg, ErrorsOfPatterns) {
  const Tensor x = ones({2, 2});
  const auto expect_pattern = [&](const auto& call, const std::string& text) {
    expect_error(call, ErrorKind::pattern, {text});
  };
  expect_pattern([&] { inverse(x, runtime("i j")); },
                 "inverse: two names are wanted in brackets, the rows and the columns of a matrix\n"
                 "  i j\n"
                 "  ^^^\n"
                 "  help: inverse(x, \"b [i j]\")");
  expect_pattern([&] { inverse(x, runtime("i [j]")); }, "  i [j]\n    ^^^\n");
  expect_pattern([&] { det(x, runtime("[i j k]")); }, "  [i j k]\n  ^^^^^^^\n");
  expect_pattern([&] { svd(x, runtime("[i 2]")); }, "  [i 2]\n  ^^^^^\n");
  expect_pattern([&] { eigh(x, runtime("[i j] -> i")); }, "the pattern takes no '->'");
  expect_pattern([&] { solve(x, x, runtime("[n m], n k -> [m] k")); },
                 "solve: the second operand must have the rows of the matrix in brackets, '[n]'\n"
                 "  [n m], n k -> [m] k\n"
                 "   ^    ^^^^^");
  expect_pattern([&] { solve(x, x, runtime("[n m], [k] n -> [m] k")); }, "'[n]'");
  expect_pattern([&] { solve(x, x, runtime("[n m], [n] k -> m k")); },
                 "solve: the result must have the columns of the matrix in brackets, '[m]'");
  expect_pattern([&] { solve(x, x, runtime("[n m], [n] k -> [m] n")); },
                 "solve: axis 'n' is the rows of the matrix, which the result lacks");
  expect_pattern([&] { solve(x, x, runtime("[n m], [n] m -> [m]")); },
                 "solve: axis 'm' is the columns of the matrix, which the result has");
  expect_pattern([&] { solve(x, x, runtime("[n m], [n] k -> [m]")); },
                 "solve: axis 'k' is lost: the output lacks it");
  expect_error([&] { solve(x, x, runtime("[n m], [n] k")); }, ErrorKind::pattern,
               {"solve: the pattern has no '->'"});
}

// --- the road ---

Graph matrix_graph(MatrixFunction function, std::int64_t batch, std::int64_t n, std::int64_t m,
                   std::int64_t right, DType dtype = DType::f64) {
  const bool has_two = info(function).operands == 2;
  Op op{.kind = OpKind::matrix, .dtype = dtype};
  op.function = function;
  op.axes = {{"b", batch}, {"n", n}, {"m", m}};
  op.roles = {MatrixAxis::batch, MatrixAxis::rows, MatrixAxis::columns};
  op.reads = {test::plain({0, 1, 2})};
  std::vector<std::pair<DType, Shape>> inputs{{dtype, {batch, n, m}}};
  if (has_two) {
    op.axes.push_back({"k", right});
    op.roles.push_back(MatrixAxis::right);
    op.reads.push_back(test::plain({3, 1}));  // for all of the batch
    inputs.push_back({dtype, {right, n}});
  }
  if (info(function).is_packed) {
    op.axes.push_back({"p", packed_size(function, n, m)});
    op.roles.push_back(MatrixAxis::packed);
  }
  op.write = function == MatrixFunction::det        ? test::plain({0})
             : info(function).is_packed             ? test::plain({0, 3})
             : has_two                              ? test::plain({3, 2, 0})
             : function == MatrixFunction::cholesky ? test::plain({0, 1, 2})
                                                    : test::plain({2, 0, 1});
  op.shape = shape_of(op.write, op.axes);
  return test::graph_of(inputs, op);
}

TEST(Linalg, TheInterpreterAgrees) {
  test::for_seeds(60, [](unsigned seed) {
    Random random(seed, DType::f64);
    const auto function = static_cast<MatrixFunction>(seed % std::size(matrix_functions));
    const std::int64_t n = static_cast<std::int64_t>(random.below(6)),
                       m = info(function).is_square ? n
                                                    : static_cast<std::int64_t>(random.below(6)),
                       right = static_cast<std::int64_t>(random.below(4));
    const Graph graph = matrix_graph(function, 2, n, m, right);
    std::vector<test::Values> inputs(1);
    for (int b = 0; b < 2; ++b) {
      const Matrix x = info(function).is_square ? regular(random, n) : random.some_matrix(n, m);
      const Matrix a = function == MatrixFunction::cholesky || function == MatrixFunction::eigh
                           ? Matrix(x + x.transpose())
                           : x;
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < m; ++j) inputs[0].push_back(a(i, j));
      }
    }
    if (info(function).operands == 2) {
      const Matrix b = random.some_matrix(right, n);
      inputs.emplace_back();
      for (std::int64_t i = 0; i < right; ++i) {
        for (std::int64_t j = 0; j < n; ++j) inputs[1].push_back(b(i, j));
      }
    }
    const test::Values want = test::interpreted(graph, inputs),
                       found = test::computed(graph, inputs);
    ASSERT_EQ(found.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(found[i], want[i], 1e-9 * (1 + std::abs(want[i])))
          << to_string(graph) << " element " << i;
  });
}

TEST(Linalg, IsPrinted) {
  const Graph graph = matrix_graph(MatrixFunction::solve, 2, 3, 3, 4);
  EXPECT_NE(to_string(graph).find("%2 = solve %0, %1  \"b n m, k n -> k m b\"  : f64 (4, 3, 2)"),
            std::string::npos)
      << to_string(graph);
  const Program program = lower(graph, std::vector<InputLayout>{{{9, 3, 1}, 0}, {{3, 1}, 0}});
  EXPECT_NE(to_string(program).find("rows n in 0..3"), std::string::npos) << to_string(program);
  EXPECT_NE(to_string(program).find("solve of x0 and x1"), std::string::npos) << to_string(program);
}

TEST(Linalg, IsVerified) {
  const auto refused = [](const auto& change) {
    Graph graph = matrix_graph(MatrixFunction::qr, 2, 3, 4, 0);
    change(graph.ops.back());
    EXPECT_THROW(verify(graph), std::logic_error);
  };
  verify(matrix_graph(MatrixFunction::qr, 2, 3, 4, 0));
  refused([](Op& op) { op.function = MatrixFunction::det; });
  refused([](Op& op) { op.function = MatrixFunction::svd; });
  refused([](Op& op) { op.roles[0] = MatrixAxis::rows; });
  refused([](Op& op) { op.roles.pop_back(); });
  refused([](Op& op) { std::swap(op.roles[1], op.roles[3]); });
  refused([](Op& op) { op.dtype = DType::f32; });
  refused([](Op& op) { op.kind = OpKind::reindex; });
}

TEST(Linalg, CostsAreEstimates) {
  // Golub, Van Loan: 2 n³ / 3 + 2 n² for each right-hand side.
  const Graph graph = matrix_graph(MatrixFunction::solve, 5, 6, 6, 4);
  const Cost whole = cost(graph);
  EXPECT_EQ(whole.model, Count(5 * (2 * 216 / 3 + 2 * 36 * 4)));
  EXPECT_EQ(whole.estimated, whole.model);
  EXPECT_EQ(whole.strict(), whole.model);
  EXPECT_EQ(whole.bytes_read, Count(8 * (5 * 36 + 4 * 6)));
  EXPECT_EQ(whole.bytes_written, Count(8 * 4 * 6 * 5));
  const Program program = lower(graph, std::vector<InputLayout>{{{36, 6, 1}, 0}, {{6, 1}, 0}});
  EXPECT_EQ(cost(program), whole);
  EXPECT_EQ(cost_formula(graph).estimated.to_string(), "432·b");
  EXPECT_EQ(cost(matrix_graph(MatrixFunction::cholesky, 1, 6, 6, 0)).model, Count(216 / 3));
  EXPECT_EQ(cost(matrix_graph(MatrixFunction::qr, 1, 6, 3, 0)).model,
            Count(4 * 6 * 9 - 4 * 27 / 3));
  EXPECT_EQ(cost(matrix_graph(MatrixFunction::eigh, 1, 6, 6, 0)).model, Count(9 * 216));
  CostScope scope;
  inverse(ones({1, 1}), "[i j]");
  EXPECT_EQ(scope.total().estimated, Count(2));
}

TEST(Linalg, CompiledAsEager) {
  const auto all = [](const Tensor& a, const Tensor& b) {
    const Tensor spd = einsum(a, a, "b i k, b j k -> b i j") + eye(4, DType::f64);
    const auto [u, s, vt] = svd(a, "b [n m]");
    const auto [q, r] = qr(a, "b [n m]");
    const auto [values, vectors] = eigh(spd, "b [i j]");
    return std::vector{u,
                       s,
                       vt,
                       q,
                       r,
                       values,
                       vectors,
                       solve(spd, b, "b [n m], [n] k -> b [m] k"),
                       lstsq(a, b, "b [n m], [n] k -> k [m] b"),
                       cholesky(spd, "b [i j]"),
                       det(spd, "b [i j]"),
                       inverse(spd, "b [i j]")};
  };
  Random random(3, DType::f64);
  const Batch a = random.batch({3}, 4, 3, [&] { return random.some_matrix(4, 3); });
  const Tensor x = Random::in_order(a.tensor, Random::without_brackets(a.pattern), "b0 n m"),
               b = from_vector(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 9}, {4, 2});
  const std::vector<Tensor> eager = all(x, b), compiled = compile(all)(x, b);
  ASSERT_EQ(compiled.size(), eager.size());
  // A compiled sum behind a product may be fused with it, and rounded once.
  for (std::size_t i = 0; i < eager.size(); ++i)
    EXPECT_TRUE(all_close(compiled[i], eager[i], 1e-12, 1e-12)) << "result " << i;
  // For any number of matrices and any size.
  auto of_lengths = compile(
      [](const Tensor& m) {
        const auto [q, r] = qr(m, "b [n m]");
        return einsum(q, r, "b n r, b r m -> b n m");
      },
      {"b n m"});
  for (const Shape& shape : {Shape{2, 3, 4}, Shape{1, 5, 2}, Shape{3, 2, 2}, Shape{2, 4, 3}}) {
    const Tensor m = randn(shape);
    EXPECT_TRUE(all_close(of_lengths(m), m, 1e-5, 1e-5)) << shape.to_string();
  }
}

TEST(Linalg, AssignedToItsOperand) {
  Random random(7, DType::f64);
  const Batch a = random.batch({5}, 3, 3, [&] { return regular(random, 3); });
  const Tensor m = Random::in_order(a.tensor, Random::without_brackets(a.pattern), "b0 n m"),
               spd = einsum(m, m, "b i k, b j k -> b i j").contiguous();
  const std::vector<double> inverted = inverse(spd, "b [i j]").to_vector<double>(),
                            lower = cholesky(spd, "b [i j]").to_vector<double>();
  const Tensor x = spd.clone(), y = spd.clone();
  auto step = compile([&](const Tensor& factor) {
    x.copy_from(inverse(x * factor, "b [i j]"));
    y.copy_from(cholesky(y, "b [i j]"));
  });
  step(ones({}, DType::f64));
  EXPECT_EQ(x.to_vector<double>(), inverted);
  EXPECT_EQ(y.to_vector<double>(), lower);
  const Tensor z = spd.clone();
  auto in_place = compile([&](const Tensor& by) {
    z.copy_from(inverse(z, "b [i j]"));
    return z * by;
  });
  EXPECT_EQ(in_place(ones({}, DType::f64)).to_vector<double>(), inverted);
}

// A view may have more elements than memory could hold.
TEST(Linalg, HugeViewsAreErrors) {
  const auto wide = [](const Shape& shape) {
    return Tensor(Storage::allocate(4), DType::f32, shape, Strides(shape.rank(), 0), 0);
  };
  constexpr std::int64_t mega = 1 << 20, giga = 1 << 30, tera = giga * 1024;
  const Tensor square = wide({giga, giga});
  expect_error([&] { svd(square, "[n m]"); }, ErrorKind::overflow, {"svd", "2^63 - 1 bytes"});
  expect_error([&] { det(square, "[n m]"); }, ErrorKind::overflow, {"det", "2^63 - 1 bytes"});
  expect_error([&] { inverse(square, "[n m]"); }, ErrorKind::overflow, {"2^63 - 1 bytes"});
  expect_error(
      [&] {
        lstsq(ones({2, 2}), wide({2, giga, giga / 2}), "[n m], [n] k l -> [m] k l");
      },
      ErrorKind::overflow, {"2^63 - 1 bytes"});
  expect_error(
      [&] {
        lstsq(wide({tera, 0}), wide({tera, mega}), "[n m], [n] k -> [m] k");
      },
      ErrorKind::overflow, {"2^63 - 1 bytes"});
}

TEST(Linalg, MoreScratchMemoryThanThereIsIsAnError) {
  const std::int64_t size = 1 << 24;
  const Tensor x(Storage::allocate(4), DType::f32, {size, size}, {0, 0}, 0);
  expect_error([&] { det(x, "[n m]"); }, ErrorKind::memory, {});
}

TEST(Linalg, SameBitsForAnyNumberOfThreads) {
  Random random(5, DType::f64);
  const Batch a = random.batch({50}, 9, 9, [&] { return random.some_matrix(9, 9); });
  const int before = num_threads();
  std::vector<std::vector<double>> found;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    found.push_back(svd(a.tensor, runtime(a.pattern)).u.to_vector<double>());
  }
  set_num_threads(before);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
}

// Householder's reflections square elements, which may leave the range of f64.
TEST(Linalg, OrthogonalFactorsOfTinyAndHugeMatrices) {
  for (const double s : {1e-310, 1e-200, 1e-160, 1.0, 1e160, 1e300}) {
    const Tensor m = tensor({{3.0, 1.0}, {4.0, 2.0}, {0.0, 5.0}}, DType::f64) * s;
    const auto [q, r] = qr(m, "[n m]");
    const auto product = matmul(q, r / s).to_vector<double>(),
               unit = matmul(q.transpose(), q).to_vector<double>();
    const std::vector<double> want{3, 1, 4, 2, 0, 5}, identity{1, 0, 0, 1};
    const double close = s < 1e-300 ? 1e-2 : 1e-14;  // subnormal numbers
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(product[i], want[i], 6 * close) << s;
    for (std::size_t i = 0; i < unit.size(); ++i) EXPECT_NEAR(unit[i], identity[i], 1e-14) << s;
    const Tensor x = lstsq(m, tensor({4.0, 6.0, 5.0}, DType::f64) * s, "[n m], [n] -> [m]");
    EXPECT_NEAR(x(0).item(), 1, close) << s;
    EXPECT_NEAR(x(1).item(), 1, close) << s;
  }
}

}  // namespace
}  // namespace ein
