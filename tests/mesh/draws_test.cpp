// bernoulli and multinomial: frequencies, repetition, compiled functions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using namespace literals;
using test::expect_error;
using test::get_values;
using test::make_tensor;
using Values = std::vector<double>;

TEST(DrawsTest, BernoulliHasTheProbabilities) {
  manual_seed(5);
  const int n = 20000;
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const Tensor p = repeat(make_tensor({0, 0.25, 0.5, 1}, {4}, dtype), "p -> p n", "n"_a = n);
    const Tensor draws = bernoulli(p);
    ASSERT_EQ(draws.dtype(), dtype);
    const Values found = get_values(reduce(draws.to(DType::f64), "p n -> p", Reduction::mean));
    EXPECT_EQ(found[0], 0);
    EXPECT_EQ(found[3], 1);
    // Six standard deviations.
    EXPECT_NEAR(found[1], 0.25, 6 * std::sqrt(0.25 * 0.75 / n));
    EXPECT_NEAR(found[2], 0.5, 6 * std::sqrt(0.25 / n));
  }
}

TEST(DrawsTest, MultinomialHasTheProbabilities) {
  manual_seed(6);
  const int n = 20000;
  const Tensor p = make_tensor({1, 0, 3, 0, 2, 2, 0, 0}, {2, 4});
  const Tensor draws = multinomial(p, "b [c]", n);
  ASSERT_EQ(draws.shape(), (Shape{2, n}));
  ASSERT_EQ(draws.dtype(), DType::i64);
  const Values counts = get_values(histogram(draws, "b [n]", 4, -0.5, 3.5));
  const Values expected{0.25, 0, 0.75, 0, 0.5, 0.5, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double q = expected[i];
    EXPECT_NEAR(counts[i] / n, q, 6 * std::sqrt(q * (1 - q) / n)) << i;
  }
  EXPECT_EQ(multinomial(p, "[b] c", 0).shape(), (Shape{0, 4}));
  EXPECT_EQ(multinomial(ones({2, 0}), "b [c]", 0).shape(), (Shape{2, 0}));
  EXPECT_EQ(multinomial(ones({0, 0}), "b [c]", 3).shape(), (Shape{0, 3}));
  EXPECT_THROW(multinomial(ones({2, 0}), "b [c]", 3), Error);
  EXPECT_EQ(multinomial(make_tensor({0, 1, 0}, {3}, DType::bf16), "[c]", 3).to_vector<int>(),
            (std::vector<int>{1, 1, 1}));
}

TEST(DrawsTest, MultinomialOfSubnormalProbabilities) {
  manual_seed(4);
  constexpr double least = std::numeric_limits<double>::denorm_min();
  for (const Values& p : {Values{least, least, 0}, Values{0, least, 0}, Values{3 * least, 0, 0}}) {
    const Tensor draws = multinomial(make_tensor(p, {3}, DType::f64), "[c]", 200);
    for (const std::int64_t drawn : draws.to_vector<std::int64_t>()) {
      ASSERT_TRUE(drawn >= 0 && drawn < 3) << drawn;
      ASSERT_GT(p[static_cast<std::size_t>(drawn)], 0);
    }
  }
}

// A step for each draw and category would be 3e10.
TEST(DrawsTest, MultinomialOfManyCategories) {
  manual_seed(9);
  const std::int64_t n = 1 << 17, half = n / 2;
  const Tensor p = (arange(n) >= half).to(DType::f32);
  const Tensor draws = multinomial(p, "[c]", 2 * n);
  EXPECT_GE(reduce(draws, "n ->", "min").item<std::int64_t>(), half);
  EXPECT_LT(reduce(draws, "n ->", "max").item<std::int64_t>(), n);
  EXPECT_NEAR(reduce(draws.to(DType::f64), "n ->", "mean").item(), half * 1.5, half * 0.01);
}

TEST(DrawsTest, SameSeedSameDrawsOnAnyNumberOfThreads) {
  const Tensor p = softmax(randn({7, 300}), "b [c]");
  const int before = num_threads();
  std::vector<Values> found;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    manual_seed(7);
    Values all_draws = get_values(multinomial(p, "b [c]", 50));
    const Values flips = get_values(bernoulli(p));
    all_draws.insert(all_draws.end(), flips.begin(), flips.end());
    found.push_back(all_draws);
  }
  set_num_threads(before);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
  manual_seed(8);
  EXPECT_NE(get_values(multinomial(p, "b [c]", 50)), get_values(multinomial(p, "b [c]", 50)));
}

TEST(DrawsTest, CompiledFunctionsDrawAnewAndAsEager) {
  const Tensor p = softmax(randn({4, 9}), "b [c]");
  const auto both = [](const Tensor& t) {
    return std::vector{multinomial(t, "b [c]", 20), bernoulli(t)};
  };
  auto compiled = compile(both);
  manual_seed(9);
  const std::vector<Tensor> first = compiled(p), second = compiled(p);
  manual_seed(9);
  const std::vector<Tensor> eager = both(p), again = both(p);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NE(get_values(first[i]), get_values(second[i]));
    EXPECT_EQ(get_values(first[i]), get_values(eager[i]));
    EXPECT_EQ(get_values(second[i]), get_values(again[i]));
  }
  // Rows that nothing can be drawn from.
  auto draw = compile([](const Tensor& t) { return multinomial(t, "b [c]", 2); });
  EXPECT_EQ(get_values(draw(make_tensor({0, 0, 1, std::nan("")}, {2, 2}))), Values(4, -1));
}

TEST(DrawsTest, PlacedProbabilitiesDrawAsWholeOnes) {
  const Mesh mesh({{"x", 2}, {"y", 2}}, "loop");
  const Tensor p = softmax(randn({4, 6}), "b [c]");
  manual_seed(9);
  const Values wanted = get_values(multinomial(p, "b [c]", 3));
  const auto draws = [&](const Tensor& placed) {
    manual_seed(9);
    Tensor drawn = multinomial(placed, "b [c]", 3);
    for (const char* axis : {"x", "y"}) drawn = gather_over(drawn, axis);
    return get_values(drawn);
  };
  EXPECT_EQ(draws(place(p, mesh, "b@x c")), wanted);
  EXPECT_EQ(draws(place(p, mesh, "b@y@x c")), wanted);
  // Rows are summed along.
  expect_error([&] { draws(place(p, mesh, "b c@x")); }, ErrorKind::placement,
               {"multinomial: axis c must be whole"});
}

TEST(DrawsTest, Errors) {
  const Tensor p = make_tensor({0.5, 0.5}, {2});
  expect_error(
      [] {
        bernoulli(make_tensor({0.5, 1.5}, {2}));
      },
      ErrorKind::value, {"bernoulli", "outside [0, 1]"});
  expect_error([] { bernoulli(make_tensor({std::nan("")}, {1})); }, ErrorKind::value,
               {"outside [0, 1]"});
  expect_error([] { bernoulli(arange(2)); }, ErrorKind::dtype, {"i64"});
  expect_error([&] { multinomial(p, "[c]", -1); }, ErrorKind::value,
               {"multinomial: the number of samples is -1"});
  expect_error([] { multinomial(arange(2), "[c]", 1); }, ErrorKind::dtype, {"floating-point"});
  expect_error(
      [] {
        multinomial(zeros({3, 0}), "b [c]", 1);
      },
      ErrorKind::reduction, {"no elements", "(3, 0)"});
  expect_error([] { multinomial(zeros({3, 2}), "b [c]", 1); }, ErrorKind::value, {"sum up to 0"});
  expect_error(
      [] {
        multinomial(make_tensor({-1, 2}, {2}), "[c]", 1);
      },
      ErrorKind::value, {"negative"});
  expect_error([&] { multinomial(p, runtime("b [c]"), 1); }, ErrorKind::rank, {"operand 1"});
}

}  // namespace
}  // namespace ein
