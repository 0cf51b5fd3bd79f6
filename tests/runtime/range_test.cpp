// Reductions of numbers at the ends of their dtype's range, beside f128.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/optim.hpp>

#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::get_values;
using Wide = __float128;
using Random = std::mt19937_64;

Wide root(Wide x) {
  if (x == 0) return 0;
  const Wide near = std::sqrt(static_cast<long double>(x));
  return (near + x / near) / 2;
}

/// The elements that are reduced, each as often as `times` says.
struct Elements {
  std::vector<double> values;
  Wide times = 1;

  Wide count() const { return static_cast<Wide>(values.size()) * times; }
  Wide mean() const {
    Wide sum = 0;
    for (double x : values) sum += x;
    return sum / static_cast<Wide>(values.size());
  }
  Wide squares(Wide about) const {
    Wide sum = 0;
    for (double x : values) sum += (x - about) * (x - about);
    return sum * times;
  }
};

Wide expected(Reduction reduction, const Elements& x) {
  switch (reduction) {
    case Reduction::var:
    case Reduction::nanvar:
      return x.squares(x.mean()) / x.count();
    case Reduction::std:
    case Reduction::nanstd:
      return root(x.squares(x.mean()) / x.count());
    case Reduction::sample_var:
      return x.squares(x.mean()) / (x.count() - 1);
    case Reduction::sample_std:
      return root(x.squares(x.mean()) / (x.count() - 1));
    case Reduction::norm:
      return root(x.squares(0));
    case Reduction::max:
      return *std::max_element(x.values.begin(), x.values.end());
    case Reduction::min:
      return *std::min_element(x.values.begin(), x.values.end());
    default:
      return x.mean();
  }
}
/// Of any numbers, and of those whose squares are in the range of what they are summed in.
constexpr Reduction of_any[] = {Reduction::norm, Reduction::max, Reduction::min};
constexpr Reduction of_squares[] = {Reduction::var,        Reduction::std,
                                    Reduction::nanvar,     Reduction::nanstd,
                                    Reduction::sample_var, Reduction::sample_std};

/// The greatest finite number, the least above 0, and a digit.
struct Limits {
  double most, least, digit;
};
Limits limits_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {std::numeric_limits<double>::max(), 0x1p-1074, 0x1p-52};
    case DType::f32:
      return {std::numeric_limits<float>::max(), 0x1p-149, 0x1p-23};
    case DType::bf16:
      return {0x1.fep127, 0x1p-133, 0x1p-7};
    default:
      return {65504, 0x1p-24, 0x1p-10};
  }
}

/// Whether `found` is `exact` but for some digits, or beyond the range as that is.
void expect_near(double found, Wide exact, const Limits& limits, const std::string& what) {
  if (exact > static_cast<Wide>(limits.most) * (1 - 4 * limits.digit)) {
    EXPECT_GE(found, limits.most * (1 - 16 * limits.digit)) << what;
    return;
  }
  const Wide allowed = 16 * limits.digit * (exact < 0 ? -exact : exact) + limits.least;
  const Wide error = found - exact;
  EXPECT_LE(static_cast<double>((error < 0 ? -error : error) / allowed), 1)
      << what << ": " << found << ", not " << static_cast<double>(exact);
}

/// Numbers of about the same size, which is up to the greatest or down to the least of the dtype,
/// or such that their squares are no more; sometimes equal ones, and sometimes far from 0.
std::vector<double> extreme_values(Random& random, std::size_t count, DType dtype, bool squared) {
  const Limits limits = limits_of(dtype);
  int greatest = std::ilogb(limits.most), least = std::ilogb(limits.least);
  if (squared) greatest = greatest / 2 - 24, least = least / 2 + 40;
  const int from_end = static_cast<int>(random() % 40);
  const int exponent =
      random() % 2 == 0 ? std::max(greatest - from_end, -10) : std::min(least + from_end, 10);
  const std::uint64_t kind = random() % 3;
  std::uniform_real_distribution<double> uniform(kind == 2 ? 0.98 : -1, 1);
  std::vector<double> values(count, std::ldexp(0.9, exponent));
  if (kind > 0) {
    for (double& x : values) x = std::ldexp(uniform(random), exponent);
  }
  return get_values(
      from_vector(values, {static_cast<std::int64_t>(count)}).to(dtype).to(DType::f64));
}

/// As one row, as rows that are reduced, or as columns.
Tensor reduced(const Tensor& x, Reduction reduction, std::uint64_t how) {
  if (how == 0) return reduce(x, "n ->", reduction);
  if (how == 1) return reduce(repeat(x, "n -> r n", axis("r", 3)), "r n -> r", reduction).at({1});
  return reduce(repeat(x, "n -> n c", axis("c", 70)), "n c -> c", reduction).at({69});
}

std::span<const Reduction> reductions(bool squared) {
  return squared ? std::span<const Reduction>(of_squares) : of_any;
}

constexpr DType dtypes[] = {DType::f64, DType::f32, DType::bf16, DType::f16};

TEST(Range, Reductions) {
  test::for_seeds(120, [](unsigned seed) {
    Random random(seed);
    constexpr std::int64_t sizes[] = {2, 3, 7, 33, 64, 100, 1000, 5000, 70000};
    const DType dtype = dtypes[random() % 4];
    const std::int64_t size = sizes[random() % 9];
    const std::uint64_t how = random() % 3;
    for (const bool squared : {false, true}) {
      const Elements elements{
          extreme_values(random, static_cast<std::size_t>(size), dtype, squared)};
      const Tensor x = from_vector(elements.values, {size}).to(dtype);
      for (const Reduction reduction : reductions(squared)) {
        const std::string what = std::string(name(reduction)) + " of " + std::to_string(size) +
                                 " " + std::string(name(dtype)) + " in form " + std::to_string(how);
        expect_near(reduced(x, reduction, how).to(DType::f64).item<double>(),
                    expected(reduction, elements), limits_of(dtype), what);
      }
    }
  });
}

/// 2^20 times the same 2^10 elements.
TEST(Range, SlowReductionsOfABillionElements) {
  test::for_seeds(6, [](unsigned seed) {
    Random random(seed);
    for (const DType dtype : dtypes) {
      for (const bool squared : {false, true}) {
        const Elements elements{extreme_values(random, 1 << 10, dtype, squared), 1 << 20};
        const Tensor few = from_vector(elements.values, {1 << 10}).to(dtype);
        const Tensor x(few.storage(), dtype, {1 << 20, 1 << 10}, {0, 1});
        for (const Reduction reduction : reductions(squared)) {
          expect_near(reduce(x, "a b ->", reduction).to(DType::f64).item<double>(),
                      expected(reduction, elements), limits_of(dtype),
                      std::string(name(reduction)) + " of " + std::string(name(dtype)));
        }
      }
    }
  });
}

TEST(Range, LayerNormOfEqualElementsIs0) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (const double value : {0.1, 1000.1, 12345.678, 1e6 + 0.3, 1e-30, -3e18}) {
      for (const std::int64_t size : {3, 17, 768, 1001}) {
        const Tensor x = full({2, size}, value, dtype);
        for (const double eps : {1e-5, 1e-12}) {
          for (const double y : get_values(layer_norm(x, "a [b]", eps).to(DType::f64)))
            ASSERT_EQ(y, 0) << value << ", " << size << " of them";
        }
      }
    }
  }
}

TEST(Range, GradientsOfNorms) {
  const auto slope = [](double size) {
    const Tensor x = from_vector<double>({3 * size, 4 * size}, {2}).to(DType::f32);
    return get_values(grad([](const Tensor& t) { return reduce(t, "n ->", "norm"); })(x));
  };
  for (const double size : {1.0, 1e30, 1e-30, 1e-38}) {
    EXPECT_NEAR(slope(size)[0], 0.6, 1e-6) << size;
    EXPECT_NEAR(slope(size)[1], 0.8, 1e-6) << size;
  }
  EXPECT_EQ(slope(0), (std::vector<double>{0, 0}));
}

TEST(Range, ClippedGradients) {
  for (const double size : {1e30, 1e-30}) {
    const Tensor p = zeros({2}).requires_grad(true), q = zeros({1}).requires_grad(true);
    p.set_grad(from_vector<double>({2 * size, 3 * size}, {2}).to(DType::f32));
    q.set_grad(from_vector<double>({6 * size}, {1}).to(DType::f32));
    const Tensor parameters[] = {p, q};
    const Tensor norm = clip_grad_norm(parameters, 0.7);
    EXPECT_NEAR(norm.item<double>() / size, 7, 1e-5);
    const double scale = size > 1 ? 0.1 / size : 1;
    EXPECT_NEAR(get_values(p.grad())[1] / (3 * size * scale), 1, 1e-5);
    EXPECT_NEAR(get_values(q.grad())[0] / (6 * size * scale), 1, 1e-5);
  }
}

TEST(Range, LambOfLargeParameters) {
  Tensor p = full({4}, 1e25).requires_grad(true);
  optim::LAMB lamb(std::vector<Tensor>{p}, optim::LAMBOptions{.learning_rate = 0.1});
  p.set_grad(ones({4}));
  lamb.step();
  for (const double x : get_values(p)) EXPECT_NEAR(x / 1e25, 0.9, 1e-3);
}

}  // namespace
}  // namespace ein
