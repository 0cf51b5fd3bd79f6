// Reductions with known answers. Random ones against two oracles: oracle_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include <ein/ein.hpp>
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::get_values;
using test::make_tensor;
using Values = std::vector<double>;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
const std::vector<Reduction> all_reductions = [] {
  std::vector<Reduction> all;
  for (const std::string_view name : detail::reduction_names) all.push_back(*parse_reduction(name));
  return all;
}();
bool skips_nan(Reduction reduction) { return name(reduction).starts_with("nan"); }

double reduce_all(const Values& values, Reduction reduction, DType dtype = DType::f32) {
  const Tensor x = make_tensor(values, {static_cast<std::int64_t>(values.size())}, dtype);
  return get_values(reduce(x, "n ->", reduction))[0];
}

/// The kind of the Error that a call throws; none, and a failure, when it throws none.
template <class F>
std::optional<ErrorKind> error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no Error";
  return std::nullopt;
}

TEST(ReduceTest, KnownAnswers) {
  const Tensor x = make_tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(get_values(reduce(x, "a b -> a", "sum")), (Values{6, 15}));
  EXPECT_EQ(get_values(reduce(x, "a b -> b", "sum")), (Values{5, 7, 9}));
  EXPECT_EQ(get_values(reduce(x, "a b -> b", "mean")), (Values{2.5, 3.5, 4.5}));
  EXPECT_EQ(get_values(reduce(x, "a b -> a", "max")), (Values{3, 6}));
  EXPECT_EQ(get_values(reduce(x, "a b -> a", "min")), (Values{1, 4}));
  EXPECT_EQ(get_values(reduce(x, "a b -> a", "prod")), (Values{6, 120}));
  EXPECT_EQ(get_values(reduce(x, "a b ->", "sum")), (Values{21}));
  EXPECT_EQ(get_values(reduce(x, "(a2 2) b -> a2 b", "max")), (Values{4, 5, 6}));
  EXPECT_EQ(get_values(reduce(x, "a b -> b a", "sum")), (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(reduce(x, "a b -> 1 a 1", "sum").shape(), (Shape{1, 2, 1}));

  const Tensor image =
      make_tensor({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {1, 4, 4, 1});
  EXPECT_EQ(get_values(reduce(image, "b (h 2) (w 2) c -> b h w c", "max")), (Values{5, 7, 13, 15}));
  EXPECT_EQ(get_values(reduce(image, "b (h 2) (w 2) c -> b h w c", "mean")),
            (Values{2.5, 4.5, 10.5, 12.5}));
  const std::vector<Tensor> list{make_tensor({1, 2}, {2}), make_tensor({3, 4}, {2})};
  EXPECT_EQ(get_values(reduce(list, "n a -> a", "sum")), (Values{4, 6}));
}

TEST(ReduceTest, VarianceAndDeviationAreOfThePopulation) {
  EXPECT_EQ(reduce_all({1, 2, 3, 4}, Reduction::var), 1.25);
  EXPECT_FLOAT_EQ(static_cast<float>(reduce_all({1, 2, 3, 4}, Reduction::std)), std::sqrt(1.25f));
  EXPECT_EQ(reduce_all({7}, Reduction::var), 0);
  // 1, 0, 1, 0, ... far from zero: sums of squares would have no digits left.
  Values far(1000);
  for (std::size_t i = 0; i < far.size(); ++i) far[i] = 100000 + static_cast<double>(i % 2);
  EXPECT_NEAR(reduce_all(far, Reduction::var), 0.25, 1e-3);
  EXPECT_NEAR(reduce_all(far, Reduction::std), 0.5, 1e-3);
}

// The mean of such rows has an error of its own; it must not become one of the variance.
TEST(ReduceTest, VarianceFarFromZeroKeepsItsDigits) {
  manual_seed(5);
  for (double mean : {1e3, 1e6, -1e6}) {
    for (const Shape& shape : {Shape{64, 1000}, Shape{3, 20000}, Shape{5, 17}}) {
      const Tensor x = (randn(shape, DType::f64) + mean).to(DType::f32);
      const Tensor wanted = reduce(x.to(DType::f64), "a n -> a", "var");
      const auto worst = [&](const Tensor& got) {
        return reduce(abs(got.to(DType::f64) - wanted) / wanted, "a -> ", "max").item();
      };
      EXPECT_LT(worst(reduce(x, "a n -> a", "var")), 2e-6)
          << "rows of " << shape.to_string() << " at " << mean;
      const Tensor deviation = reduce(x, "a n -> a", "std");
      EXPECT_LT(worst(deviation.to(DType::f64) * deviation.to(DType::f64)), 2e-6)
          << shape.to_string() << " at " << mean;
      const Tensor columns = rearrange(x, "a n -> (n a)").view({shape[1], shape[0]});
      EXPECT_LT(worst(reduce(columns, "n a -> a", "var")), 2e-6)
          << "columns of " << shape.to_string() << " at " << mean;
    }
  }
}

TEST(ReduceTest, SumsOfManyElementsKeepTheirDigits) {
  constexpr std::int64_t n = 10'000'000;
  const float tenth = 0.1f;
  const double want = static_cast<double>(tenth) * static_cast<double>(n);
  float naive = 0;
  for (std::int64_t i = 0; i < n; ++i) naive += tenth;
  ASSERT_GT(std::abs(naive - want) / want, 1e-3);  // what this test is about
  const Tensor x = full({n}, tenth);
  const auto relative_error = [&](const Tensor& sum, double of) {
    double worst = 0;
    for (double value : get_values(sum)) worst = std::max(worst, std::abs(value - of) / of);
    return worst;
  };
  // A cascade's error is a few times eps = 1.2e-7.
  EXPECT_LT(relative_error(reduce(x, "n ->", "sum"), want), 1e-6);
  EXPECT_LT(relative_error(reduce(x.view({10, n / 10}), "a b ->", "sum"), want), 1e-6);
  EXPECT_LT(relative_error(reduce(x.view({4, n / 4}), "a b -> a", "sum"), want / 4), 1e-6);
  EXPECT_LT(relative_error(reduce(x.view({n / 4, 4}), "a b -> b", "sum"), want / 4), 1e-6);
  EXPECT_LT(relative_error(reduce(x.view({n / 1000, 1000}), "a b -> b", "sum"), want / 1000), 1e-6);
  EXPECT_LT(relative_error(reduce(x.view({1000, n / 1000}), "a b -> a", "sum"), want / 1000), 1e-6);
  EXPECT_LT(relative_error(einsum(x, "n ->"), want), 1e-6);
  EXPECT_LT(relative_error(reduce(x, "n ->", "mean"), static_cast<double>(tenth)), 1e-6);
  EXPECT_LT(
      relative_error(reduce(x.view({n / 4, 4}), "a b -> b", "mean"), static_cast<double>(tenth)),
      1e-6);
  EXPECT_LT(get_values(reduce(x, "n ->", "var"))[0], 1e-12);
}

TEST(ReduceTest, NanIsContagious) {
  for (std::size_t at : {0u, 1u, 17u, 511u, 512u, 1499u}) {
    Values values(1500, 1);
    values[at] = nan;
    for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      for (Reduction reduction : all_reductions) {
        if (skips_nan(reduction)) continue;
        const double got = reduce_all(values, reduction, dtype);
        const bool is_question = reduction == Reduction::any || reduction == Reduction::all;
        if (is_question) {
          EXPECT_EQ(got, 1) << name(reduction);  // NaN differs from zero
        } else {
          EXPECT_TRUE(std::isnan(got))
              << name(reduction) << " of " << name(dtype) << " with NaN at " << at << " is " << got;
        }
      }
      // The columns of a matrix, of which one has the NaN.
      const Tensor x = make_tensor(values, {3, 500}, dtype);
      const Values sums = get_values(reduce(x, "a b -> b", "max"));
      for (std::size_t b = 0; b < sums.size(); ++b)
        EXPECT_EQ(std::isnan(sums[b]), b == at % 500) << at << " " << b;
    }
  }
}

TEST(ReduceTest, NanIsSkipped) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const std::size_t more : {0, 1500}) {  // NaN
      Values values(more, nan), numbers{3, 1, 4, 1, 5};
      values.insert(values.begin() + static_cast<std::ptrdiff_t>(more / 2), numbers.begin(),
                    numbers.end());
      for (const Reduction reduction : all_reductions) {
        if (!skips_nan(reduction)) continue;
        const Reduction of_all = *parse_reduction(name(reduction).substr(3));
        EXPECT_EQ(reduce_all(values, reduction, dtype), reduce_all(numbers, of_all, dtype))
            << name(reduction);
      }
    }
    const Values none(3, nan);
    EXPECT_EQ(reduce_all(none, Reduction::nansum, dtype), 0);
    EXPECT_EQ(reduce_all(none, Reduction::nanprod, dtype), 1);
    for (const Reduction reduction : {Reduction::nanmean, Reduction::nanmax, Reduction::nanmin,
                                      Reduction::nanvar, Reduction::nanstd})
      EXPECT_TRUE(std::isnan(reduce_all(none, reduction, dtype))) << name(reduction);
    EXPECT_EQ(reduce_all({nan, -inf}, Reduction::nanmax, dtype), -inf);
    EXPECT_EQ(reduce_all({nan, inf}, Reduction::nanmin, dtype), inf);
  }
}

TEST(ReduceTest, SampleVarianceIsBesselCorrected) {
  EXPECT_DOUBLE_EQ(reduce_all({1, 2, 3, 4}, Reduction::sample_var, DType::f64), 5.0 / 3);
  EXPECT_DOUBLE_EQ(reduce_all({1, 2, 3, 4}, Reduction::sample_std, DType::f64), std::sqrt(5.0 / 3));
  for (const DType dtype : {DType::f64, DType::f32}) {
    EXPECT_EQ(reduce_all({2, 2}, Reduction::sample_std, dtype), 0);
    EXPECT_TRUE(std::isnan(reduce_all({7}, Reduction::sample_var, dtype)));
    EXPECT_TRUE(std::isnan(reduce_all({}, Reduction::sample_std, dtype)));
  }
}

TEST(ReduceTest, NormIsTheRootOfSquares) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    EXPECT_EQ(reduce_all({3, -4}, Reduction::norm, dtype), 5);
    EXPECT_EQ(reduce_all({0, -0.0}, Reduction::norm, dtype), 0);
    EXPECT_EQ(reduce_all({}, Reduction::norm, dtype), 0);
    EXPECT_EQ(reduce_all({-2}, Reduction::norm, dtype), 2);
    EXPECT_EQ(reduce_all({1, -inf}, Reduction::norm, dtype), inf);
  }
}

TEST(ReduceTest, Infinities) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    SCOPED_TRACE(std::string(name(dtype)));
    EXPECT_EQ(reduce_all({1, inf, 2}, Reduction::sum, dtype), inf);
    EXPECT_TRUE(std::isnan(reduce_all({inf, -inf}, Reduction::sum, dtype)));
    EXPECT_EQ(reduce_all({1, inf, -inf}, Reduction::max, dtype), inf);
    EXPECT_EQ(reduce_all({1, inf, -inf}, Reduction::min, dtype), -inf);
    EXPECT_EQ(reduce_all({-inf, -inf}, Reduction::max, dtype), -inf);
    EXPECT_EQ(reduce_all({1, inf}, Reduction::logsumexp, dtype), inf);
    EXPECT_EQ(reduce_all({-inf, -inf, -inf}, Reduction::logsumexp, dtype), -inf);
    EXPECT_EQ(reduce_all(Values(40, -inf), Reduction::logsumexp, dtype), -inf);
    EXPECT_EQ(reduce_all({-inf, 3}, Reduction::logsumexp, dtype), 3);
    EXPECT_TRUE(std::isnan(reduce_all({1, inf}, Reduction::var, dtype)));
    EXPECT_TRUE(std::isnan(reduce_all({1, inf}, Reduction::std, dtype)));
  }
}

TEST(ReduceTest, LogSumExpDoesNotOverflow) {
  EXPECT_NEAR(reduce_all({1000, 1000}, Reduction::logsumexp), 1000 + std::log(2.0), 1e-4);
  EXPECT_NEAR(reduce_all({-1000, -1000}, Reduction::logsumexp), -1000 + std::log(2.0), 1e-4);
  EXPECT_NEAR(reduce_all(Values(4096, 0.0), Reduction::logsumexp, DType::f64), std::log(4096.0),
              1e-14);
}

TEST(ReduceTest, NoElements) {
  for (DType dtype : real_dtypes) {
    for (const Shape& shape : {Shape{3, 0}, Shape{3, 0, 2}}) {
      const Tensor x = make_tensor({}, shape, dtype);
      const auto of = [&](Reduction reduction) {
        return get_values(reduce(x, "a ... -> a", reduction));
      };
      EXPECT_EQ(of(Reduction::sum), Values(3, 0));
      EXPECT_EQ(of(Reduction::prod), Values(3, 1));
      EXPECT_EQ(of(Reduction::any), Values(3, 0));
      EXPECT_EQ(of(Reduction::all), Values(3, 1));
      EXPECT_EQ(error_of([&] { of(Reduction::max); }), ErrorKind::reduction);
      EXPECT_EQ(error_of([&] { of(Reduction::min); }), ErrorKind::reduction);
      if (!is_floating(dtype)) continue;
      EXPECT_EQ(error_of([&] { of(Reduction::nanmax); }), ErrorKind::reduction);
      EXPECT_EQ(of(Reduction::norm), Values(3, 0));
      EXPECT_EQ(of(Reduction::nansum), Values(3, 0));
      EXPECT_EQ(of(Reduction::nanprod), Values(3, 1));
      for (Reduction reduction : {Reduction::mean, Reduction::var, Reduction::std,
                                  Reduction::sample_var, Reduction::nanmean, Reduction::nanstd}) {
        for (double value : of(reduction)) EXPECT_TRUE(std::isnan(value)) << name(reduction);
      }
      // f8e4m3 has no infinities; its lowest number stands for one.
      EXPECT_EQ(of(Reduction::logsumexp), Values(3, dtype == DType::f8e4m3 ? -448 : -inf));
    }
    // An empty result asks for the largest of nothing nowhere.
    const Tensor x = make_tensor({}, {0, 0}, dtype);
    EXPECT_EQ(reduce(x, "a b -> a", "max").shape(), Shape{0});
    EXPECT_EQ(reduce(make_tensor({}, {0, 3}, dtype), "a b -> a", "min").shape(), Shape{0});
  }
}

TEST(ReduceTest, IntegersWrap) {
  const std::vector<std::int64_t> large{std::numeric_limits<std::int64_t>::max(), 1, 5};
  EXPECT_EQ(reduce(from_vector(large), "n ->", "sum").item<std::int64_t>(),
            std::numeric_limits<std::int64_t>::min() + 5);
  EXPECT_EQ(reduce(full({64}, 2, DType::i64), "n ->", "prod").item<std::int64_t>(), 0);
  EXPECT_EQ(reduce(full({63}, 2, DType::i64), "n ->", "prod").item<std::int64_t>(),
            std::numeric_limits<std::int64_t>::min());
  // Those of 32 and 8 bits do where the call says that the result has as many.
  EXPECT_EQ(reduce(full({31}, 2, DType::i32), "n ->", "prod", as(DType::i32)).item<std::int64_t>(),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(
      reduce(full({2}, 2147483647, DType::i32), "n ->", "sum", as(DType::i32)).item<std::int64_t>(),
      -2);
  EXPECT_EQ(reduce(full({3}, 200, DType::u8), "n ->", "sum", as(DType::u8)).item<std::int64_t>(),
            600 % 256);
  EXPECT_EQ(reduce(full({3}, 200, DType::u8), "n ->", "max").item<std::int64_t>(), 200);
  const std::vector<std::int64_t> extremes{std::numeric_limits<std::int64_t>::min(),
                                           std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(reduce(from_vector(extremes), "n ->", "min").item<std::int64_t>(), extremes[0]);
  EXPECT_EQ(reduce(from_vector(extremes), "n ->", "max").item<std::int64_t>(), extremes[1]);
}

TEST(ReduceTest, RowsOfIntegersOfManyLengths) {
  for (const DType dtype : {DType::i8, DType::u8, DType::i32, DType::i64}) {
    for (const std::int64_t length :
         {1, 3, 8, 31, 64, 100, 511, 512, 515, 1000, 1024, 1025, 5000}) {
      constexpr std::int64_t rows = 5;
      Values values(static_cast<std::size_t>(rows * length));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<double>(i * 7919 % 251) - (dtype == DType::u8 ? 0 : 125);
      const Tensor x = make_tensor(values, {rows, length}, dtype);
      Values sums, least, most;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto begin = values.begin() + r * length, end = begin + length;
        sums.push_back(std::accumulate(begin, end, 0.0));
        least.push_back(*std::min_element(begin, end));
        most.push_back(*std::max_element(begin, end));
      }
      SCOPED_TRACE(std::string(name(dtype)) + ", rows of " + std::to_string(length));
      EXPECT_EQ(get_values(reduce(x, "r n -> r", "sum")), sums);
      EXPECT_EQ(get_values(reduce(x, "r n -> r", "min")), least);
      EXPECT_EQ(get_values(reduce(x, "r n -> r", "max")), most);
    }
  }
}

TEST(ReduceTest, IntegersHaveNoMean) {
  for (DType dtype : {DType::i64, DType::i32, DType::u8, DType::boolean}) {
    const Tensor x = ones({2, 2}, dtype);
    for (Reduction reduction :
         {Reduction::mean, Reduction::var, Reduction::std, Reduction::logsumexp}) {
      EXPECT_EQ(error_of([&] { reduce(x, "a b -> a", reduction); }), ErrorKind::dtype)
          << name(reduction);
      // Not even of one element each.
      EXPECT_EQ(error_of([&] { reduce(x, "a b -> a b", reduction); }), ErrorKind::dtype)
          << name(reduction);
    }
  }
  EXPECT_EQ(error_of([] { reduce(ones({2}), "a ->", runtime("median")); }), ErrorKind::reduction);
}

TEST(ReduceTest, NarrowFloatsAccumulateInF32) {
  // The sum, 2.4e8, is no f16; the mean is.
  EXPECT_EQ(get_values(reduce(full({4096}, 60000.0, DType::f16), "n ->", "mean"))[0],
            60000 / 32 * 32);
  EXPECT_EQ(get_values(reduce(full({4096}, 60000.0, DType::f16), "n ->", "var"))[0], 0);
  EXPECT_EQ(get_values(reduce(full({4096}, 60000.0, DType::f16), "n ->", "sum"))[0], inf);
  EXPECT_EQ(get_values(reduce(full({4096}, 300.0, DType::f8e4m3), "n ->", "mean"))[0], 288);
  // Adding 1 to 256 is lost in bf16, to 2048 in f16, to 16 in f8e4m3.
  EXPECT_EQ(get_values(reduce(ones({4096}, DType::bf16), "n ->", "sum"))[0], 4096);
  EXPECT_EQ(get_values(reduce(ones({3, 4096}, DType::f16), "a n -> a", "sum")), Values(3, 4096));
  EXPECT_EQ(get_values(reduce(ones({4096, 3}, DType::f16), "n a -> a", "sum")), Values(3, 4096));
  EXPECT_EQ(get_values(reduce(ones({256}, DType::f8e4m3), "n ->", "sum"))[0], 256);
  EXPECT_EQ(get_values(reduce(ones({4096}, DType::f8e5m2), "n ->", "sum"))[0], 4096);
}

TEST(ReduceTest, Bools) {
  const Tensor x = make_tensor({0, 0, 0, 1, 1, 1}, {3, 2}, DType::boolean);
  for (Reduction reduction : {Reduction::max, Reduction::any}) {
    EXPECT_EQ(get_values(reduce(x, "a b -> a", reduction)), (Values{0, 1, 1})) << name(reduction);
  }
  EXPECT_EQ(get_values(reduce(x, "a b -> a", "sum")), (Values{0, 1, 2}));
  for (Reduction reduction : {Reduction::prod, Reduction::min, Reduction::all}) {
    EXPECT_EQ(get_values(reduce(x, "a b -> a", reduction)), (Values{0, 0, 1})) << name(reduction);
  }
  EXPECT_EQ(reduce(x, "a b -> a", "any").dtype(), DType::boolean);
  EXPECT_EQ(get_values(reduce(ones({256}, DType::boolean), "n ->", "sum"))[0], 256);
  // As a bool, 256 times true is true: no sum that wraps to 0.
  EXPECT_EQ(get_values(reduce(ones({256}, DType::boolean), "n ->", "sum", as(DType::boolean)))[0],
            1);
}

TEST(ReduceTest, QuestionsAreAnsweredInTheInputsDtype) {
  for (DType dtype : real_dtypes) {
    const double some = dtype == DType::boolean ? 1 : 2;
    const Tensor x = make_tensor({0, 0, 0, some, some, some}, {3, 2}, dtype);
    EXPECT_EQ(get_values(reduce(x, "a b -> a", "any")), (Values{0, 1, 1}));
    EXPECT_EQ(get_values(reduce(x, "a b -> a", "all")), (Values{0, 0, 1}));
    EXPECT_EQ(get_values(reduce(x, "a b -> a b", "any")), (Values{0, 0, 0, 1, 1, 1}));
    EXPECT_EQ(reduce(x, "a b -> a", "all").dtype(), dtype);
  }
}

TEST(ReduceTest, ResultsDoNotDependOnTheNumberOfThreads) {
  const int threads_before = num_threads();
  manual_seed(3);
  const Tensor x = randn({200, 7, 300});
  const Tensor halves = x.to(DType::f16);
  const auto results = [&] {
    std::vector<Tensor> all;
    for (Reduction reduction : all_reductions) {
      for (const Tensor& input : {x, halves}) {
        all.push_back(reduce(input, "a b c -> a", reduction));
        all.push_back(reduce(input, "a b c -> c", reduction));
        all.push_back(reduce(input, "a b c -> b", reduction));
        all.push_back(reduce(input, "a b c -> c a", reduction));
        all.push_back(reduce(input.view({52500, 8}), "n c -> c", reduction));
        all.push_back(reduce(input, "a b c ->", reduction));
      }
    }
    return all;
  };
  set_num_threads(1);
  const std::vector<Tensor> alone = results();
  for (int threads : {2, 3, 4}) {
    set_num_threads(threads);
    const std::vector<Tensor> together = results();
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(std::memcmp(alone[i].raw_data(), together[i].raw_data(), alone[i].nbytes()), 0)
          << threads << " threads, result " << i;
    }
  }
  set_num_threads(threads_before);
}

}  // namespace
}  // namespace ein
