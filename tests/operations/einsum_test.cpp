// Einsum with known answers. Random ones against two oracles: oracle_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using namespace ein::literals;
using test::expect_error;
using test::get_values;
using test::make_tensor;
using Values = std::vector<double>;

constexpr DType float_dtypes[] = {DType::f64,  DType::f32,    DType::f16,
                                  DType::bf16, DType::f8e4m3, DType::f8e5m2};

TEST(EinsumTest, KnownAnswersInEveryDtypeThatHoldsThem) {
  for (DType dtype :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8}) {
    SCOPED_TRACE(std::string(name(dtype)));
    const Tensor a = make_tensor({1, 2, 3, 4, 5, 6}, {2, 3}, dtype);
    const Tensor b = make_tensor({1, 0, 2, 1, 0, 3}, {3, 2}, dtype);
    const Tensor s = make_tensor({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3}, dtype);
    const Tensor v = make_tensor({1, 2, 3}, {3}, dtype);
    EXPECT_EQ(get_values(einsum(a, b, "i k, k j -> i j")), (Values{5, 11, 14, 23}));
    EXPECT_EQ(get_values(einsum(a, b, "i k, k j -> j i")), (Values{5, 14, 11, 23}));
    EXPECT_EQ(get_values(einsum(a, a, "i k, j k -> i j")), (Values{14, 32, 32, 77}));
    EXPECT_EQ(get_values(einsum(a, a, "i k, i k ->")), Values{91});
    EXPECT_EQ(get_values(einsum(a, a, "i k, i k -> i k")), (Values{1, 4, 9, 16, 25, 36}));
    EXPECT_EQ(get_values(einsum(v, v, "i, j -> i j")), (Values{1, 2, 3, 2, 4, 6, 3, 6, 9}));
    EXPECT_EQ(get_values(einsum(v, v, "_, _ ->")), Values{36});
    EXPECT_EQ(get_values(einsum(a, "i k -> k i")), (Values{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(get_values(einsum(a, "i k -> k")), (Values{5, 7, 9}));
    EXPECT_EQ(get_values(einsum(s, "i i ->")), Values{15});
    EXPECT_EQ(get_values(einsum(s, "i i -> i")), (Values{1, 5, 9}));
    EXPECT_EQ(get_values(einsum(v, s, v, "i, i j, j ->")), Values{228});
    EXPECT_EQ(get_values(einsum(s, v, "i i, i -> i")), (Values{1, 10, 27}));
    EXPECT_EQ(get_values(einsum(a, v, "i _, _ -> i")), (Values{36, 90}));
    EXPECT_EQ(get_values(einsum(v, "i -> i 2")), (Values{1, 1, 2, 2, 3, 3}));
    EXPECT_EQ(get_values(einsum(a, "(1 2) i -> i")), (Values{5, 7, 9}));
    EXPECT_EQ(einsum(a, b, "i k, k j -> i j").dtype(), is_floating(dtype) ? dtype : DType::i64);
    EXPECT_EQ(einsum(a, b, "i k, k j -> i j", as(dtype)).dtype(), dtype);
  }
}

TEST(EinsumTest, OfScalars) {
  const Tensor two = full({}, 2.0, DType::f32), three = full({}, 3.0, DType::f32);
  EXPECT_EQ(einsum(two, three, ", ->").item(), 6);
  EXPECT_EQ(einsum(two, three, runtime(", ->")).item(), 6);
  EXPECT_EQ((einsum<", ->">(Float<"">(two), Float<"">(three)).item()), 6);
}

TEST(EinsumTest, CompositesEllipsesAndNumbers) {
  const Tensor x = make_tensor({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4});
  const Tensor w = make_tensor({1, 10}, {2});
  EXPECT_EQ(get_values(einsum(x, w, "s (h d), d -> s h")), (Values{21, 43, 65, 87}));
  EXPECT_EQ(get_values(einsum(x, w, "s (h d), h -> d s")), (Values{31, 75, 42, 86}));
  EXPECT_EQ(get_values(einsum(x, w, "... (h d), d -> (h ...)")), (Values{21, 65, 43, 87}));
  EXPECT_EQ(get_values(einsum(x, "s (h 2) -> h s")), (Values{3, 11, 7, 15}));
  EXPECT_EQ(get_values(einsum(x, "s (h d) -> s", "h"_a = 4)), (Values{10, 26}));
  // Axes under '...' are aligned at the right; a size of 1 stretches.
  const Tensor column = make_tensor({1, 2}, {2, 1}), row = make_tensor({1, 10, 100}, {3});
  EXPECT_EQ(get_values(einsum(column, row, "..., ... -> ...")), (Values{1, 10, 100, 2, 20, 200}));
  EXPECT_EQ(get_values(einsum(column, row, "..., ... ->")), Values{333});
  const Tensor batch = make_tensor({1, 0, 0, 1, 2, 0, 0, 2}, {2, 2, 2}),
               m = make_tensor({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(get_values(einsum(batch, m, "... i k, ... k j -> ... i j")),
            (Values{1, 2, 3, 4, 2, 4, 6, 8}));
}

TEST(EinsumTest, WordsAreAxesNotLetters) {
  const Tensor a = make_tensor({1, 2, 3, 4}, {1, 2, 2}), b = make_tensor({1, 1, 2, 2}, {1, 2, 2});
  // Of ipx,iqx->pq with i, the batch, summed as well.
  EXPECT_EQ(get_values(einsum(a, b, "i p x, i q x -> p q")), (Values{3, 6, 7, 14}));
  const Tensor v = make_tensor({1, 2}, {2}), w = make_tensor({3, 4}, {2});
  EXPECT_EQ(get_values(einsum(v, w, "ipx,iqx->ipx iqx")), (Values{3, 4, 6, 8}));
  EXPECT_EQ(get_values(einsum(v, w, "ipx,ipx->")), Values{11});
  const Tensor batches = make_tensor({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  EXPECT_EQ(get_values(einsum(batches, batches, "i p x, i q x -> i p q")),
            (Values{5, 11, 11, 25, 61, 83, 83, 113}));
}

TEST(EinsumTest, ThirtyAxes) {
  std::string all, reversed;
  Shape shape;
  for (int a = 0; a < 30; ++a) {
    all += " a" + std::to_string(a);
    reversed += " a" + std::to_string(29 - a);
    shape.push_back(a % 3 == 0 ? 2 : 1);
  }
  Values values(1024);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 7);
  const Tensor x = make_tensor(values, shape);
  const Tensor turned = einsum(x, x, runtime(all + "," + all + "->" + reversed));
  EXPECT_EQ(turned.rank(), 30u);
  const Values got = get_values(turned);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t from = 0;  // the ten bits of the index, backwards
    for (int bit = 0; bit < 10; ++bit) from |= (i >> bit & 1) << (9 - bit);
    ASSERT_EQ(got[i], values[from] * values[from]);
  }
  double dot = 0;
  for (double v : values) dot += v * v;
  EXPECT_EQ(get_values(einsum(x, x, runtime(all + "," + all + "->")))[0], dot);
}

TEST(EinsumTest, MoreAxesThanTheAlphabetHasLetters) {
  // 20 matrices of 2 x 2 on a ring of 60 axes: each has an axis of its own, one of size 1, and
  // shares one.
  std::string pattern;
  std::vector<Tensor> operands;
  for (int i = 0; i < 20; ++i) {
    const std::string own = "own" + std::to_string(i), one = "one" + std::to_string(i);
    pattern += (i ? ", " : "") + ("ring" + std::to_string(i)) + " " + own + " " + one + " ring" +
               std::to_string((i + 1) % 20);
    operands.push_back(ones({2, 3, 1, 2}, DType::f64));
  }
  // The trace of the product of 20 matrices of threes: 2^20 · 3^20.
  EXPECT_EQ(get_values(einsum(operands, runtime(pattern + " ->")))[0], 3656158440062976.0);
  const Tensor kept = einsum(operands, runtime(pattern + " -> own7 one3 own19"));
  EXPECT_EQ(kept.shape(), (Shape{3, 1, 3}));
  EXPECT_EQ(get_values(kept)[4], 3656158440062976.0 / 9);
}

TEST(EinsumTest, IntegersWrap) {
  const std::vector<std::int64_t> large{std::int64_t{1} << 62, 3}, factors{2, 5};
  // 2^63 + 15 is -2^63 + 15.
  EXPECT_EQ(einsum(from_vector(large), from_vector(factors), "n, n ->").item<std::int64_t>(),
            std::numeric_limits<std::int64_t>::min() + 15);
  const Tensor matrix = full({40, 40}, std::int64_t{1} << 33, DType::i64);
  EXPECT_EQ(einsum(matrix, matrix, "i k, k j -> i j").at({3, 4}).item<std::int64_t>(), 0);
  EXPECT_EQ(einsum(full({3}, 100000, DType::i32), full({3}, 100000, DType::i32), "n, n ->",
                   as(DType::i32))
                .item<std::int32_t>(),
            static_cast<std::int32_t>(static_cast<std::uint32_t>(30000000000u % 4294967296u)));
  EXPECT_EQ(einsum(full({2}, 200, DType::u8), full({2}, 100, DType::u8), "n, n ->", as(DType::u8))
                .item<std::int64_t>(),
            40000 % 256);
  EXPECT_EQ(einsum(full({5}, 200, DType::u8), "n ->", as(DType::u8)).item<std::int64_t>(),
            1000 % 256);
  const Tensor bytes = full({4}, 77, DType::u8);
  EXPECT_EQ(einsum(bytes, bytes, bytes, "i, i, i ->", as(DType::u8)).item<std::int64_t>(),
            4 * 77 * 77 * 77 % 256);
  EXPECT_EQ(einsum(bytes, bytes, bytes, "i, i, i ->").item<std::int64_t>(), 4 * 77 * 77 * 77);
}

TEST(EinsumTest, BoolsCountPairsOrAskWhetherThereIsOne) {
  const Tensor edges = make_tensor({0, 1, 0, 0, 0, 1, 0, 0, 0}, {3, 3}, DType::boolean);
  const Tensor reached = einsum(edges, edges, "a b, b c -> a c", as(DType::boolean));
  EXPECT_EQ(get_values(reached), (Values{0, 0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(reached.dtype(), DType::boolean);
  const Tensor many = ones({256}, DType::boolean);
  EXPECT_EQ(get_values(einsum(many, many, "n, n ->")), Values{256});
  EXPECT_EQ(get_values(einsum(many, many, "n, n ->", as(DType::boolean))), Values{1});
  EXPECT_EQ(get_values(einsum(many, many, many, "n, n, _ -> n"))[0], 256);
  EXPECT_EQ(get_values(einsum(many, many, many, "n, n, _ -> n", as(DType::boolean)))[0], 1);
}

TEST(EinsumTest, NarrowFloatsAccumulateInF32) {
  for (DType dtype : float_dtypes) {
    SCOPED_TRACE(std::string(name(dtype)));
    const double n = dtype == DType::f8e4m3 ? 256 : 4096;  // the largest that it holds of these
    const Tensor x = ones({static_cast<std::int64_t>(n)}, dtype);
    EXPECT_EQ(get_values(einsum(x, "n ->"))[0], n);
    EXPECT_EQ(get_values(einsum(x, x, "n, n ->"))[0], n);
    EXPECT_EQ(get_values(einsum(x, x, x, "n, n, n ->"))[0], n);
    const Tensor rows = ones({40, static_cast<std::int64_t>(n)}, dtype);
    EXPECT_EQ(get_values(einsum(rows, rows, "i k, j k -> i j")), Values(1600, n));
    EXPECT_EQ(get_values(einsum(rows, x, "i k, k -> i")), Values(40, n));
  }
  // An intermediate result that f16 cannot hold, 4096 · 60000, times 2^-12.
  const Tensor x = full({4096}, 60000.0, DType::f16), y = full({1}, 1.0 / 4096, DType::f16);
  EXPECT_EQ(get_values(einsum(x, y, y, "_, m, _ -> m"))[0], 14.6484375);
}

TEST(EinsumTest, NanAndInfinityComeThrough) {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor a = make_tensor({1, inf, 0, nan}, {2, 2}), b = make_tensor({1, 0, 0, 1}, {2, 2});
  const Values product = get_values(einsum(a, b, "i k, k j -> i j"));
  EXPECT_TRUE(std::isnan(product[0]));  // 1·1 + inf·0
  EXPECT_EQ(product[1], inf);
  EXPECT_TRUE(std::isnan(product[2]));
}

TEST(EinsumTest, NothingIsSummedToZero) {
  const Tensor a = make_tensor({}, {3, 0}), b = make_tensor({}, {0, 2});
  EXPECT_EQ(get_values(einsum(a, b, "i k, k j -> i j")), Values(6, 0));
  EXPECT_EQ(get_values(einsum(a, "i k -> i")), Values(3, 0));
  EXPECT_EQ(get_values(einsum(a, b, "i _, _ j -> i j")), Values(6, 0));
  EXPECT_EQ(einsum(b, b, "k j, k i -> k i j").shape(), (Shape{0, 2, 2}));
}

TEST(EinsumTest, MovesWithoutAProductAreViews) {
  const Tensor x = make_tensor({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3});
  EXPECT_TRUE(einsum(x, "i j -> j i").same_storage(x));
  EXPECT_TRUE(einsum(x, "i i -> i").same_storage(x));
  EXPECT_EQ(einsum(x, "i i -> i").strides(), Strides{4});
  EXPECT_TRUE(einsum(x, "i j -> i 5 j").same_storage(x));
  EXPECT_FALSE(einsum(x, "i j -> (j i)").same_storage(x));
  EXPECT_FALSE(einsum(x, "i j -> i").same_storage(x));
}

TEST(EinsumTest, LargeProductsOfEveryLayout) {
  // Beyond the blocks of a matrix product and cut between threads; whole numbers, so every sum is
  // exact.
  constexpr std::int64_t m = 131, n = 197, k = 523;
  Values av(m * k), bv(k * n), want(m * n, 0);
  for (std::size_t i = 0; i < av.size(); ++i) av[i] = static_cast<double>(i * 7 % 5) - 2;
  for (std::size_t i = 0; i < bv.size(); ++i) bv[i] = static_cast<double>(i * 11 % 7) - 3;
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t l = 0; l < k; ++l) {
      for (std::size_t j = 0; j < n; ++j) want[i * n + j] += av[i * k + l] * bv[l * n + j];
    }
  }
  for (DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32, DType::bf16}) {
    const Tensor a = make_tensor(av, {m, k}, dtype), b = make_tensor(bv, {k, n}, dtype);
    const Tensor at = rearrange(a, "m k -> k m").clone(), bt = rearrange(b, "k n -> n k").clone();
    const Tensor wide = make_tensor(Values(m * k * 3, 9), {m, k, 3}, dtype);
    wide.at({every, every, 1}).copy_from(a);
    Values rounded = want;
    for (double& v : rounded) v = test::stored(v, dtype);
    EXPECT_EQ(get_values(einsum(a, b, "m k, k n -> m n")), rounded) << name(dtype);
    EXPECT_EQ(get_values(einsum(at, bt, "k m, n k -> m n")), rounded) << name(dtype);
    EXPECT_EQ(get_values(einsum(wide.at({every, every, 1}), bt, "m k, n k -> m n")), rounded)
        << name(dtype);
    EXPECT_EQ(get_values(rearrange(einsum(at, b, "k m, k n -> n m"), "n m -> m n")), rounded)
        << name(dtype);
  }
}

// Rows, columns and depths of two axes each, in every order: some lie as one, others are packed, as
// in the result.
TEST(EinsumTest, ProductsOfAxesInAnyOrder) {
  Values av(24 * 6 * 20 * 7), bv(20 * 7 * 17 * 10);
  for (std::size_t i = 0; i < av.size(); ++i) av[i] = static_cast<double>(i * 7 % 5) - 2;
  for (std::size_t i = 0; i < bv.size(); ++i) bv[i] = static_cast<double>(i * 11 % 7) - 3;
  std::mt19937 random(1);
  for (DType dtype : {DType::f64, DType::f32, DType::i64, DType::bf16}) {
    const Tensor a = make_tensor(av, {24, 6, 20, 7}, dtype),
                 b = make_tensor(bv, {20, 7, 17, 10}, dtype);
    const Values want = get_values(einsum(a, b, "m n k l, k l p q -> m n p q"));
    for (int order = 0; order < 30; ++order) {
      std::string x = "m n k l", y = "k l p q", z = "m n p q";
      const auto shuffle = [&](std::string& axes) {
        for (std::size_t left = 4; left > 1; --left)
          std::swap(axes[2 * (left - 1)], axes[2 * (random() % left)]);
      };
      for (std::string* axes : {&x, &y, &z}) shuffle(*axes);
      SCOPED_TRACE(x + ", " + y + " -> " + z);
      const Tensor to = einsum(rearrange(a, ein::runtime("m n k l -> " + x)).clone(),
                               rearrange(b, ein::runtime("k l p q -> " + y)).clone(),
                               ein::runtime(x + ", " + y + " -> " + z));
      EXPECT_EQ(get_values(rearrange(to, ein::runtime(z + " -> m n p q"))), want) << name(dtype);
    }
  }
}

TEST(EinsumTest, DotProductsOfEveryLength) {
  for (std::int64_t k = 1; k < 140; ++k) {
    Values av(static_cast<std::size_t>(3 * k)), bv(av.size()), want(3, 0);
    for (std::size_t i = 0; i < av.size(); ++i) {
      av[i] = static_cast<double>(i * 7 % 5) - 2;
      bv[i] = static_cast<double>(i * 11 % 7) - 3;
      want[i / static_cast<std::size_t>(k)] += av[i] * bv[i];
    }
    for (DType dtype : {DType::f64, DType::f32, DType::i64}) {
      const Tensor a = make_tensor(av, {3, k}, dtype), b = make_tensor(bv, {3, k}, dtype);
      EXPECT_EQ(get_values(einsum(a, b, "b i, b i -> b")), want) << k << ' ' << name(dtype);
    }
  }
}

// Sums that are rounded once, however they are computed: at once, in parts, over two axes, followed
// by more.
TEST(EinsumTest, Bf16SumsAreRoundedOnce) {
  for (std::int64_t k : {1, 2, 33, 2048, 2049, 5000}) {
    SCOPED_TRACE(k);
    const auto numbers = [](std::int64_t count, int step) {
      Values values(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<double>(i * 7 % 11 * static_cast<std::size_t>(step) % 13) - 5;
      return values;
    };
    const Tensor a = make_tensor(numbers(2 * 19 * k, 3), {2, 19, k}),
                 b = make_tensor(numbers(2 * k * 35, 5), {2, k, 35});
    const auto check = [&](auto pattern, const Tensor& x, const Tensor& y) {
      const Tensor exact = einsum(x, y, pattern);
      EXPECT_EQ(get_values(einsum(x.to(DType::bf16), y.to(DType::bf16), pattern)),
                get_values(exact.to(DType::bf16)));
    };
    check(ein::runtime("p i k, p k j -> p i j"), a, b);
    check(ein::runtime("p i k, p k j -> i j"), a, b);
    check(ein::runtime("p i k, q k j -> j p i q"), a, b);
    check(ein::runtime("p i k, p k j -> p"), a, b);
    check(ein::runtime("p k i, k -> p i"), rearrange(a, "p i k -> p k i").clone(),
          b.at({0, every, 3}));
    const Tensor low = a.to(DType::bf16);
    EXPECT_EQ(get_values(gelu(einsum(low, b.to(DType::bf16), "p i k, p k j -> p i j"))),
              get_values(gelu(einsum(a, b, "p i k, p k j -> p i j").to(DType::bf16))));
  }
}

TEST(EinsumTest, AnEmptySumIsZeroBesideAnything) {
  const Tensor nothing = zeros({0, 2}),
               numbers = full({3}, std::numeric_limits<double>::quiet_NaN());
  for (const Tensor& x : {numbers, full({3}, INFINITY), full({3}, -1)}) {
    for (double y : get_values(einsum(nothing, x, "_ b, c -> c b"))) {
      EXPECT_EQ(y, 0);
      EXPECT_FALSE(std::signbit(y));
    }
    EXPECT_EQ(get_values(einsum(x, nothing, x, "_, _ b, _ -> b")), (std::vector<double>{0, 0}));
  }
}

// A literal is refused by the compiler: tests/must_not_compile/axes/summed_alone.cpp.
TEST(EinsumTest, AxesSummedAlone) {
  const std::vector<Tensor> xs{make_tensor({1, 2, 3, 4}, {2, 2}), make_tensor({5, 6}, {2})};
  const Values sums{33, 77};
  const auto refused = [](const auto& call) {
    expect_error(call, ErrorKind::pattern, {"axes 'j' and 'k' are summed alone"});
  };
  EXPECT_EQ(get_values(einsum(xs[0], xs[1], "i _, _ -> i")), sums);
  EXPECT_EQ(get_values(einsum(xs[0], xs[1], runtime("i j, k -> i"))), sums);
  EXPECT_EQ(get_values(einsum(xs, runtime("i j, k -> i"))), sums);
  EXPECT_EQ(get_values(einsum(xs, runtime("i j, k -> i"), EinsumOptions{})), sums);
  EXPECT_EQ(get_values(einsum(xs, runtime("i j, k -> i"), {.sums_alone = true})), sums);
  refused([&] { einsum(xs, runtime("i j, k -> i"), {.sums_alone = false}); });
  EXPECT_EQ(get_values(einsum(xs, "i j, k -> i", {.sums_alone = true})), sums);
  refused([&] { einsum(xs, "i j, k -> i", {.sums_alone = false}); });
  refused([&] { einsum(xs, "i j, k -> i", {.max_intermediate = 100}); });
  // Options ask for nothing where one operand is summed, or products are.
  EXPECT_EQ(get_values(einsum(std::span(xs).first(1), "i j -> i", {.sums_alone = false})),
            (Values{3, 7}));
  EXPECT_EQ(get_values(einsum(xs, "i j, j -> i", {.sums_alone = false})), (Values{17, 39}));
  Tensor c = zeros({2});
  einsum_into(c, xs[0], xs[1], runtime("i j, k -> i"));
  EXPECT_EQ(get_values(c), sums);
}

TEST(EinsumTest, OneToEightOperands) {
  const Tensor x = full({2}, 2.0);
  EXPECT_EQ(get_values(einsum(x, "i ->"))[0], 4);
  EXPECT_EQ(get_values(einsum(x, x, "i, i ->"))[0], 8);
  EXPECT_EQ(get_values(einsum(x, x, x, "i, i, i ->"))[0], 16);
  EXPECT_EQ(get_values(einsum(x, x, x, x, "i, i, i, i ->"))[0], 32);
  EXPECT_EQ(get_values(einsum(x, x, x, x, x, "i, i, i, i, i ->"))[0], 64);
  EXPECT_EQ(get_values(einsum(x, x, x, x, x, x, "i, i, i, i, i, i ->"))[0], 128);
  EXPECT_EQ(get_values(einsum(x, x, x, x, x, x, x, "i, i, i, i, i, i, i ->"))[0], 256);
  EXPECT_EQ(get_values(einsum(x, x, x, x, x, x, x, x, "i, i, i, i, i, i, i, i ->"))[0], 512);
}

}  // namespace
}  // namespace ein
