// Matrix products, on operands that lie in every way.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ein/parallel.hpp>

#include "cpu/gemm.hpp"
#include "cpu/level.hpp"
#include "support/seeds.hpp"

namespace ein::host {
#if defined(EIN_HAS_EMULATED_TILES)
namespace emulated_tiles {
extern const Bf16Products bf16_products;
}
#endif
namespace {

enum class Lie { rows, columns, rows_with_gap, columns_with_gap, neither };
constexpr Lie ways_to_lie[] = {Lie::rows, Lie::columns, Lie::rows_with_gap, Lie::columns_with_gap,
                               Lie::neither};

template <class T>
T number(int x) {
  if constexpr (std::is_same_v<T, bf16>) {
    return convert<bf16>(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}
template <class T>
auto value_of(T x) {
  if constexpr (std::is_same_v<T, bf16>) {
    return convert<float>(x);
  } else {
    return x;
  }
}

/// A matrix in memory of its own, which ends with its last element so that sanitizers see what
/// reads behind it. What is between its elements is kept apart from them.
template <class T>
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t cols, Lie lie, std::mt19937_64& random)
      : rows_(rows), cols_(cols) {
    switch (lie) {
      case Lie::rows:
        strides_ = {cols, 1};
        break;
      case Lie::columns:
        strides_ = {1, rows};
        break;
      case Lie::rows_with_gap:
        strides_ = {cols + 3, 1};
        break;
      case Lie::columns_with_gap:
        strides_ = {1, rows + 5};
        break;
      case Lie::neither:
        strides_ = {3, 3 * rows + 2};
        break;
    }
    if (rows == 0 || cols == 0) return;
    memory_.resize(
        static_cast<std::size_t>((rows - 1) * strides_.first + (cols - 1) * strides_.second + 1),
        number<T>(gap));
    std::uniform_int_distribution<int> value(-8, 8);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) memory_[index(i, j)] = number<T>(value(random));
    }
  }

  MatrixRef<T> ref() { return {memory_.data(), rows_, cols_, strides_.first, strides_.second}; }
  MatrixRef<const T> ref() const {
    return {memory_.data(), rows_, cols_, strides_.first, strides_.second};
  }
  T operator()(std::int64_t i, std::int64_t j) const { return memory_[index(i, j)]; }
  std::pair<std::int64_t, std::int64_t> sizes() const { return {rows_, cols_}; }

  std::size_t count_of_gaps() const {
    std::size_t n = 0;
    for (T x : memory_) n += value_of(x) == value_of(number<T>(gap));
    return n;
  }

 private:
  static constexpr int gap = 1 << 23;  // no result gets as large

  std::size_t index(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(i * strides_.first + j * strides_.second);
  }

  std::int64_t rows_, cols_;
  std::pair<std::int64_t, std::int64_t> strides_;
  std::vector<T> memory_;
};

/// What a product finishes, which has to be each of its elements once.
class Finished {
 public:
  Finished(std::int64_t rows, std::int64_t cols)
      : cols_(cols), times_(static_cast<std::size_t>(rows * cols), 0) {}

  void operator()(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols,
                  const float* /*sums*/ = nullptr) const {
    for (std::int64_t i = row; i < row + rows; ++i) {
      for (std::int64_t j = col; j < col + cols; ++j)
        ++times_[static_cast<std::size_t>(i * cols_ + j)];
    }
  }
  void expect_each_once() const { EXPECT_EQ(times_, std::vector<int>(times_.size(), 1)); }

 private:
  std::int64_t cols_;
  mutable std::vector<int> times_;
};

/// before + a · b, row by row. Values are small integers, so that every order of summation gives
/// the same result, also in float.
template <class T, class C>
auto product_of(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>* before) {
  using Sum = decltype(value_of(T{}));
  const auto [m, k] = a.sizes();
  const auto n = static_cast<std::size_t>(b.sizes().second);
  std::vector<Sum> sums(static_cast<std::size_t>(m) * n), row(n);
  for (std::int64_t i = 0; before && i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      sums[static_cast<std::size_t>(i) * n + j] =
          value_of((*before)(i, static_cast<std::int64_t>(j)));
  }
  for (std::int64_t l = 0; l < k; ++l) {
    for (std::size_t j = 0; j < n; ++j) row[j] = value_of(b(l, static_cast<std::int64_t>(j)));
    for (std::int64_t i = 0; i < m; ++i) {
      Sum* const to = sums.data() + static_cast<std::size_t>(i) * n;
      const Sum factor = value_of(a(i, l));
      for (std::size_t j = 0; j < n; ++j) to[j] += factor * row[j];
    }
  }
  return sums;
}
/// How many elements of c, row by row, are not those.
template <class C, class Sum>
std::int64_t count_wrong(const Matrix<C>& c, const std::vector<Sum>& expected) {
  std::int64_t wrong = 0;
  const auto [m, n] = c.sizes();
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const Sum sum = expected[static_cast<std::size_t>(i * n + j)];
      if constexpr (std::is_same_v<C, bf16>) {
        wrong += value_of(c(i, j)) != value_of(convert<bf16>(sum));
      } else {
        wrong += !(c(i, j) == sum);
      }
    }
  }
  return wrong;
}

template <class T, class Product>
void expect_product(const Product& product, std::int64_t m, std::int64_t n, std::int64_t k,
                    Lie c_lies, Lie a_lies, Lie b_lies, bool accumulate, std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << ", lying "
                                  << static_cast<int>(c_lies) << static_cast<int>(a_lies)
                                  << static_cast<int>(b_lies) << (accumulate ? ", +=" : ""));
  const Matrix<T> a(m, k, a_lies, random), b(k, n, b_lies, random);
  Matrix<T> c(m, n, c_lies, random);
  const Matrix<T> before = c;
  const Finished finished(m, n);
  product(c.ref(), a.ref(), b.ref(), accumulate, finished);
  finished.expect_each_once();
  EXPECT_EQ(count_wrong(c, product_of(a, b, accumulate ? &before : nullptr)), 0);
  EXPECT_EQ(c.count_of_gaps(), before.count_of_gaps());
}

/// The product in blocks on a machine with such caches.
template <class T>
auto in_blocks(const Caches& caches) {
  return [=](const auto&... arguments) { level().products<T>().blocked(caches, arguments...); };
}

template <class T>
class GemmTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GemmTest, Types);

TYPED_TEST(GemmTest, EverySizeAroundATileLyingInEveryWay) {
  std::mt19937_64 random(1);
  const auto any = [&](const auto& list) { return list[random() % std::size(list)]; };
  const std::int64_t sizes[] = {0,  1,  2,  3,  5,  6,  7,  8,  11, 12, 13, 15, 16,
                                17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 64, 65};
  for (std::int64_t m : sizes) {
    for (std::int64_t n : sizes) {
      const std::int64_t k = any(sizes);
      const Lie c = any(ways_to_lie), a = any(ways_to_lie), b = any(ways_to_lie);
      expect_product<TypeParam>(gemm<TypeParam>, m, n, k, c, a, b, random() % 2 == 0, random);
      expect_product<TypeParam>(in_blocks<TypeParam>(caches()), m, n, k, c, a, b, random() % 2 == 0,
                                random);
    }
  }
}

TYPED_TEST(GemmTest, EveryCombinationOfWaysToLie) {
  std::mt19937_64 random(2);
  const std::int64_t sizes[][3] = {{4, 4, 4},   {37, 53, 41}, {64, 64, 32},
                                   {1, 40, 50}, {40, 1, 50},  {1, 1, 70}};
  for (const auto& [m, n, k] : sizes) {
    for (Lie c : ways_to_lie) {
      for (Lie a : ways_to_lie) {
        for (Lie b : ways_to_lie) {
          for (bool accumulate : {false, true}) {
            expect_product<TypeParam>(gemm<TypeParam>, m, n, k, c, a, b, accumulate, random);
          }
        }
      }
    }
  }
}

// Past the blocks of depth and columns, and past the rows for which b is packed.
TYPED_TEST(GemmTest, SeveralBlocks) {
  std::mt19937_64 random(3);
  const std::int64_t sizes[][3] = {
      {150, 20, 700}, {30, 70, 513}, {13, 1100, 300}, {131, 530, 257}, {3, 2000, 3}};
  for (const auto& [m, n, k] : sizes) {
    for (Lie a : ways_to_lie) {
      for (Lie b : ways_to_lie) {
        const Lie c = ways_to_lie[random() % std::size(ways_to_lie)];
        expect_product<TypeParam>(gemm<TypeParam>, m, n, k, c, a, b, random() % 2 == 0, random);
      }
    }
  }
}

// So large that several panels of the left operand meet one of the right.
TYPED_TEST(GemmTest, LargeBlocks) {
  std::mt19937_64 random(12);
  for (Lie a : ways_to_lie) {
    const Lie b = ways_to_lie[random() % std::size(ways_to_lie)];
    const Lie c = random() % 2 == 0 ? Lie::rows_with_gap : Lie::neither;
    expect_product<TypeParam>(gemm<TypeParam>, 513, 1030, 515, c, a, b, random() % 2 == 0, random);
  }
  // Some results of a larger one.
  const std::int64_t m = 530, n = 2100, k = 1536;  // blocks as deep as they get
  const Matrix<TypeParam> x(m, k, Lie::rows, random), y(k, n, Lie::rows, random);
  Matrix<TypeParam> z(m, n, Lie::rows, random);
  gemm<TypeParam>(z.ref(), x.ref(), y.ref(), false);
  for (int tries = 0; tries < 5000; ++tries) {
    const auto i = static_cast<std::int64_t>(random() % m),
               j = static_cast<std::int64_t>(random() % n);
    TypeParam sum{};
    for (std::int64_t l = 0; l < k; ++l) sum += x(i, l) * y(l, j);
    ASSERT_EQ(z(i, j), sum) << i << ' ' << j;
  }
}

// Of caches of all sizes, on one thread and on several.
TYPED_TEST(GemmTest, BlocksForOtherCaches) {
  const int threads = num_threads();
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto between = [&](std::int64_t least, std::int64_t most) {
      return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least));
    };
    Caches other;
    other.l1_way = std::int64_t{64} << random() % 7;
    other.l1 = other.l1_way * between(1, 13);
    other.l2 = other.l1 * between(1, 10);
    other.l3 = other.l2 * between(1, 40);
    set_num_threads(static_cast<int>(between(1, 4)));
    // Enough for several threads, and sometimes for panels of a that stay.
    const std::int64_t m = between(30, 700), n = between(30, 300), k = 600'000 / (m * n) + 1;
    const auto any = [&] { return ways_to_lie[random() % std::size(ways_to_lie)]; };
    const Lie c = any(), a = any(), b = any();
    expect_product<TypeParam>(in_blocks<TypeParam>(other), m, n, k, c, a, b, random() % 2 == 0,
                              random);
  }
  set_num_threads(threads);
}

// With numbers that do round.
TYPED_TEST(GemmTest, NoDepthIsZeroOrNothingAdded) {
  std::mt19937_64 random(4);
  for (Lie c : ways_to_lie) {
    for (bool accumulate : {false, true}) {
      expect_product<TypeParam>(gemm<TypeParam>, 20, 35, 0, c, Lie::rows, Lie::rows, accumulate,
                                random);
      expect_product<TypeParam>(gemm<TypeParam>, 20, 1, 0, c, Lie::rows, Lie::rows, accumulate,
                                random);
    }
  }
}

TYPED_TEST(GemmTest, InfinitiesAndNansGoWhereTheyBelong) {
  std::mt19937_64 random(5);
  for (Lie lie : {Lie::rows, Lie::columns}) {
    const std::int64_t m = 19, n = 37, k = 21;
    Matrix<TypeParam> a(m, k, lie, random), c(m, n, lie, random);
    Matrix<TypeParam> b(k, n, lie, random);
    b.ref().data[3 * b.ref().row_stride + 36 * b.ref().col_stride] = std::nan("");
    gemm<TypeParam>(c.ref(), std::as_const(a).ref(), std::as_const(b).ref(), false);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) EXPECT_EQ(std::isnan(c(i, j)), j == 36) << i << ' ' << j;
    }
  }
}

// Errors of summation, with numbers that do round: within the bound of Higham, Accuracy and
// Stability of Numerical Algorithms, section 3.5.
TYPED_TEST(GemmTest, RoundsAsWellAsAPlainSum) {
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  const std::int64_t m = 50, n = 70, k = 600;
  std::vector<TypeParam> a(m * k), b(k * n), c(m * n);
  for (TypeParam& x : a) x = static_cast<TypeParam>(normal(random));
  for (TypeParam& x : b) x = static_cast<TypeParam>(normal(random));
  gemm<TypeParam>({c.data(), m, n, n, 1}, {a.data(), m, k, k, 1}, {b.data(), k, n, n, 1}, false);
  const double unit = std::numeric_limits<TypeParam>::epsilon() / 2;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      long double sum = 0, size = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const long double term = static_cast<long double>(a[i * k + l]) * b[l * n + j];
        sum += term;
        size += std::abs(term);
      }
      EXPECT_LE(std::abs(c[i * n + j] - sum), k * unit / (1 - k * unit) * size);
    }
  }
}

// Of every size, in rows or in columns, with gaps between those or none, one behind the other or
// apart.
TYPED_TEST(GemmTest, ManyTinyProducts) {
  std::mt19937_64 random(15);
  const auto coin = [&] { return random() % 2 == 0; };
  for (std::int64_t m = 1; m <= most_tiny; ++m) {
    for (std::int64_t n = 1; n <= most_tiny; ++n) {
      for (std::int64_t k = 1; k <= most_tiny; ++k) {
        for (int round = 0; round < 16; ++round) {
          const std::int64_t count = 5, apart = coin() ? 0 : 3;
          const auto values = [&](std::int64_t step) {
            std::vector<TypeParam> all(static_cast<std::size_t>(count * step));
            for (TypeParam& x : all)
              x = static_cast<TypeParam>(static_cast<int>(random() % 17) - 8);
            return all;
          };
          // Of one matrix, with no elements yet.
          const auto lying = [&]<class C>(C*, std::int64_t rows, std::int64_t cols) {
            const std::int64_t gap = coin() ? 0 : 2;
            return coin() ? MatrixRef<C>{nullptr, rows, cols, cols + gap, 1}
                          : MatrixRef<C>{nullptr, rows, cols, 1, rows + gap};
          };
          auto left = lying(static_cast<const TypeParam*>(nullptr), m, k),
               right = lying(static_cast<const TypeParam*>(nullptr), k, n);
          auto result = lying(static_cast<TypeParam*>(nullptr), m, n);
          const auto step_of = [&](const auto& x) {
            return std::max(x.rows * x.row_stride, x.cols * x.col_stride) + apart;
          };
          const std::int64_t steps[] = {step_of(left), step_of(right), step_of(result)};
          const std::vector<TypeParam> a = values(steps[0]), b = values(steps[1]);
          std::vector<TypeParam> c = values(steps[2]);
          const std::vector<TypeParam> before = c;
          left.data = a.data();
          right.data = b.data();
          result.data = c.data();
          tiny_products<TypeParam>(result, left, right, steps, count);
          std::vector<TypeParam> expected = before;
          for (std::int64_t p = 0; p < count; ++p) {
            for (std::int64_t i = 0; i < m; ++i) {
              for (std::int64_t j = 0; j < n; ++j) {
                TypeParam sum{};
                for (std::int64_t l = 0; l < k; ++l) {
                  sum += left.data[p * steps[0] + i * left.row_stride + l * left.col_stride] *
                         right.data[p * steps[1] + l * right.row_stride + j * right.col_stride];
                }
                expected[static_cast<std::size_t>(p * steps[2] + i * result.row_stride +
                                                  j * result.col_stride)] = sum;
              }
            }
          }
          ASSERT_EQ(c, expected) << m << " x " << n << " x " << k << ", round " << round;
        }
      }
    }
  }
}

TEST(GemmIntegersTest, Wrap) {
  std::mt19937_64 random(7);
  for (const auto [m, n, k] : {std::array{3, 4, 5}, {33, 20, 40}}) {
    for (Lie lie : {Lie::rows, Lie::columns}) {
      expect_product<std::uint64_t>(gemm<std::uint64_t>, m, n, k, lie, Lie::rows, lie, true,
                                    random);
    }
  }
}

/// A result in bf16 is rounded once.
template <class C, class Product>
void expect_bf16_product(const Product& product, std::int64_t m, std::int64_t n, std::int64_t k,
                         Lie c_lies, Lie a_lies, Lie b_lies, bool accumulate,
                         std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << ", lying "
                                  << static_cast<int>(c_lies) << static_cast<int>(a_lies)
                                  << static_cast<int>(b_lies) << (accumulate ? ", +=" : ""));
  const Matrix<bf16> a(m, k, a_lies, random), b(k, n, b_lies, random);
  const Matrix<C> before(m, n, c_lies, random);
  const std::vector<float> sums = product_of(a, b, accumulate ? &before : nullptr);
  const auto expect = [&](const Matrix<C>& c) {
    EXPECT_EQ(count_wrong(c, sums), 0);
    EXPECT_EQ(c.count_of_gaps(), before.count_of_gaps());
  };
  Matrix<C> plain = before;
  product(plain.ref(), a.ref(), b.ref(), accumulate, {});
  expect(plain);
  for (const Order order : {Order::row_major, Order::column_major}) {
    Matrix<C> c = before;
    const Finished finished(m, n);
    const auto finish = [&](std::int64_t row, std::int64_t rows, std::int64_t col,
                            std::int64_t cols, const float* sums_of_part) {
      finished(row, rows, col, cols);
      EXPECT_EQ(sums_of_part != nullptr, (std::is_same_v<C, bf16>));
      const MatrixRef<C> to = c.ref();
      for (std::int64_t i = 0; sums_of_part && i < rows; ++i) {
        for (std::int64_t j = 0; j < cols; ++j) {
          to.data[(row + i) * to.row_stride + (col + j) * to.col_stride] =
              convert<C>(sums_of_part[order == Order::row_major ? i * cols + j : j * rows + i]);
        }
      }
    };
    product(c.ref(), a.ref(), b.ref(), accumulate, Finish(finish, order));
    finished.expect_each_once();
    expect(c);
  }
}

// Of which the tests below are.
TEST(Bf16ProductsTest, AreInPairsWhereTheInstructionsAre) {
  const Bf16Products& products = bf16_products();
  EXPECT_EQ(products.in_pairs != nullptr, products.isa >= Isa::v4_bf16);
  EXPECT_GE(products.isa, level().isa);
  if (level().isa <= isa()) {
    EXPECT_LE(products.isa, isa());
  }
}

#if defined(EIN_HAS_EMULATED_TILES)
/// They are compiled for v4.
bool has_emulated_tiles() {
  const std::vector<Isa>& here = isas_here();
  return std::find(here.begin(), here.end(), Isa::v4) != here.end();
}
#endif

/// Products of bf16 in pairs: those that run here, and those by tiles with emulated instructions.
struct NamedProducts {
  const char* name;
  const Bf16Products::InPairs* products;
};
std::vector<NamedProducts> products_in_pairs() {
  std::vector<NamedProducts> all;
  if (bf16_products().in_pairs) all.push_back({"Here", bf16_products().in_pairs});
#if defined(EIN_HAS_EMULATED_TILES)
  if (has_emulated_tiles())
    all.push_back({"EmulatedTiles", emulated_tiles::bf16_products.in_pairs});
#endif
  return all;
}
class GemmBf16Test : public testing::TestWithParam<NamedProducts> {
 protected:
  const Bf16Products::InPairs* const products_ = GetParam().products;
};
INSTANTIATE_TEST_SUITE_P(All, GemmBf16Test, testing::ValuesIn(products_in_pairs()),
                         [](const auto& info) { return std::string(info.param.name); });
// Where there are none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GemmBf16Test);

TEST_P(GemmBf16Test, EverySizeAroundATileLyingInEveryWay) {
  std::mt19937_64 random(8);
  const auto any = [&](const auto& list) { return list[random() % std::size(list)]; };
  const std::int64_t sizes[] = {0,  1,  2,  3,  7,  11, 12, 13, 15, 16, 17,
                                24, 25, 31, 32, 33, 47, 48, 65, 97, 130};
  for (std::int64_t m : sizes) {
    for (std::int64_t n : sizes) {
      const Lie c = any(ways_to_lie), a = any(ways_to_lie), b = any(ways_to_lie);
      expect_bf16_product<float>(products_->to_f32, m, n, any(sizes), c, a, b, random() % 2 == 0,
                                 random);
      expect_bf16_product<bf16>(products_->to_bf16, m, n, any(sizes), c, a, b, false, random);
    }
  }
}

TEST_P(GemmBf16Test, EveryCombinationOfWaysToLie) {
  std::mt19937_64 random(9);
  const std::int64_t sizes[][3] = {{4, 4, 4},   {37, 53, 41}, {64, 64, 32}, {1, 40, 50},
                                   {40, 1, 51}, {1, 1, 70},   {111, 35, 66}};
  for (const auto& [m, n, k] : sizes) {
    for (Lie c : ways_to_lie) {
      for (Lie a : ways_to_lie) {
        for (Lie b : ways_to_lie) {
          expect_bf16_product<float>(products_->to_f32, m, n, k, c, a, b, random() % 2 == 0,
                                     random);
          expect_bf16_product<bf16>(products_->to_bf16, m, n, k, c, a, b, false, random);
        }
      }
    }
  }
}

// Past the blocks of depth and columns, and past the panels of a that are packed together.
TEST_P(GemmBf16Test, SeveralBlocks) {
  std::mt19937_64 random(10);
  const std::int64_t sizes[][3] = {
      {150, 20, 700}, {30, 200, 2048}, {13, 1100, 300}, {131, 530, 257}, {3, 2000, 3}};
  for (const auto& [m, n, k] : sizes) {
    for (Lie a : ways_to_lie) {
      const Lie b = ways_to_lie[random() % std::size(ways_to_lie)],
                c = ways_to_lie[random() % std::size(ways_to_lie)];
      expect_bf16_product<float>(products_->to_f32, m, n, k, c, a, b, random() % 2 == 0, random);
      expect_bf16_product<bf16>(products_->to_bf16, m, n, k, c, a, b, false, random);
    }
  }
  for (std::int64_t k : {2049, 2050, 6001})
    expect_bf16_product<float>(products_->to_f32, 20, 150, k, Lie::rows, Lie::rows, Lie::columns,
                               true, random);
}

TEST_P(GemmBf16Test, InfinitiesAndNansGoWhereTheyBelong) {
  std::mt19937_64 random(11);
  for (Lie lie : {Lie::rows, Lie::columns, Lie::neither}) {
    for (std::int64_t k : {21, 22}) {
      // What lies behind a row or a column is its neighbour, which must not be multiplied by the
      // zeros of an odd depth.
      const std::int64_t m = 19, n = 37;
      Matrix<bf16> a(m, k, lie, random), b(k, n, lie, random), c(m, n, Lie::rows, random);
      a.ref().data[4 * a.ref().row_stride] = convert<bf16>(std::numeric_limits<float>::infinity());
      b.ref().data[3 * b.ref().row_stride + 36 * b.ref().col_stride] = convert<bf16>(std::nanf(""));
      for (std::int64_t j = 0; j < n; ++j) b.ref().data[j * b.ref().col_stride] = number<bf16>(1);
      products_->to_bf16(c.ref(), std::as_const(a).ref(), std::as_const(b).ref(), false, {});
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          EXPECT_EQ(std::isnan(value_of(c(i, j))), j == 36) << i << ' ' << j;
          EXPECT_EQ(std::isinf(value_of(c(i, j))), i == 4 && j != 36) << i << ' ' << j;
        }
      }
    }
  }
}

/// Those that run here, and those by tiles with emulated instructions.
std::vector<Bf16Products::FewRows> few_rows_of_bf16() {
  std::vector<Bf16Products::FewRows> all{bf16_products().few_rows};
  if (bf16_products().few_rows_in_tiles.to_f32) all.push_back(bf16_products().few_rows_in_tiles);
#if defined(EIN_HAS_EMULATED_TILES)
  if (has_emulated_tiles()) all.push_back(emulated_tiles::bf16_products.few_rows_in_tiles);
#endif
  return all;
}

// On every processor, past the chunks of columns and the pieces of depth too.
TEST(FewRowsTest, LyingInEveryWay) {
  constexpr Caches small_caches{.l1 = 4 << 10, .l2 = 8 << 10, .l3 = 8 << 10, .l1_way = 1 << 10};
  std::mt19937_64 random(13 + test::first_seed());
  const auto any = [&](const auto& list) { return list[random() % std::size(list)]; };
  const std::int64_t sizes[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 65, 100, 511, 1030, 2500};
  const Lie of_weights[] = {Lie::rows, Lie::columns, Lie::rows_with_gap, Lie::columns_with_gap};
  const auto check = [&](std::int64_t rows, std::int64_t n, std::int64_t k) {
    const bool is_turned = random() % 2 == 0, accumulate = random() % 2 == 0;
    const std::int64_t m = is_turned ? n : rows, columns = is_turned ? rows : n;
    const Lie c = any(ways_to_lie), w = any(of_weights), x = any(ways_to_lie);
    const Lie a = is_turned ? w : x, b = is_turned ? x : w;
    // Small caches: several chunks, blocks and strips of most sizes.
    for (const Caches& sizes_of_caches : {caches(), small_caches}) {
      const auto with = [&](auto product) {
        return [product, &sizes_of_caches](const auto& to, const auto& left, const auto& right,
                                           bool adds, const Finish& finish) {
          if (has_few_columns(to, left, right)) {
            product(sizes_of_caches, to.transposed(), right.transposed(), left.transposed(), adds,
                    finish.transposed());
          } else {
            product(sizes_of_caches, to, left, right, adds, finish);
          }
        };
      };
      expect_product<float>(with(level().f32_products.few_rows), m, columns, k, c, a, b, accumulate,
                            random);
      expect_product<double>(with(level().f64_products.few_rows), m, columns, k, c, a, b,
                             accumulate, random);
      for (const Bf16Products::FewRows& of_bf16 : few_rows_of_bf16()) {
        expect_bf16_product<float>(with(of_bf16.to_f32), m, columns, k, c, a, b, accumulate,
                                   random);
        expect_bf16_product<bf16>(with(of_bf16.to_bf16), m, columns, k, c, a, b, false, random);
      }
    }
  };
  for (std::int64_t rows = 1; rows <= most_few_rows; ++rows) {
    for (std::size_t i = 0; i < std::size(sizes); ++i) {
      if (!test::is_wanted(i + static_cast<std::size_t>(rows))) continue;
      check(rows, sizes[i], any(sizes));
      check(rows, sizes[i], any(sizes));
    }
  }
  for (std::int64_t rows : {1, 7, 16}) {
    for (int tries = 0; tries < 4; ++tries) check(rows, 37, 300'001 / rows);
  }
}

// Neighbours of a row of weights, and of rows, are not to be multiplied by zeros.
TEST(FewRowsTest, InfinitiesGoWhereTheyBelong) {
  std::mt19937_64 random(14);
  const float infinity = std::numeric_limits<float>::infinity();
  for (Lie lie : {Lie::rows, Lie::columns}) {
    for (std::int64_t k : {21, 22}) {
      const std::int64_t m = 3, n = 37;
      Matrix<bf16> a(m, k, lie, random), b(k, n, lie, random);
      Matrix<float> c(m, n, Lie::rows, random);
      for (std::int64_t j = 0; j < n; ++j) b.ref().data[j * b.ref().col_stride] = number<bf16>(1);
      a.ref().data[a.ref().row_stride] = convert<bf16>(infinity);
      b.ref().data[3 * b.ref().row_stride + 30 * b.ref().col_stride] = convert<bf16>(std::nanf(""));
      for (const Bf16Products::FewRows& of_bf16 : few_rows_of_bf16()) {
        of_bf16.to_f32(caches(), c.ref(), std::as_const(a).ref(), std::as_const(b).ref(), false,
                       {});
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            EXPECT_EQ(std::isnan(c(i, j)), j == 30) << i << ' ' << j;
            EXPECT_EQ(std::isinf(c(i, j)), i == 1 && j != 30) << i << ' ' << j;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ein::host
