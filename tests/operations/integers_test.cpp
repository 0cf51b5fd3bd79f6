// Integers of every width: arithmetic modulo 2^bits, and what depends on the sign of a number.
// Expected values are NumPy's, where it does not promote otherwise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <type_traits>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>

#include "support/expect_error.hpp"

namespace ein {
namespace {

using namespace literals;

constexpr std::uint64_t most = UINT64_MAX, half = std::uint64_t{1} << 63;

template <class T>
class Integer : public testing::Test {};
using Integers = testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                                std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Integer, Integers);

/// Numbers all over the range, its ends among them.
template <class T>
std::vector<T> numbers(std::size_t n) {
  std::mt19937_64 random(11);
  std::vector<T> values{std::numeric_limits<T>::min(),
                        std::numeric_limits<T>::max(),
                        T(0),
                        T(1),
                        T(2),
                        static_cast<T>(-1),
                        T(100),
                        T(63)};
  while (values.size() < n) values.push_back(static_cast<T>(random() >> random() % 64));
  return values;
}

/// In the type modulo 2^bits.
template <class T>
T wrapped(auto x) {
  return static_cast<T>(static_cast<std::uint64_t>(x));
}

TYPED_TEST(Integer, ArithmeticIsModuloTwoToTheBits) {
  using T = TypeParam;
  const std::vector<T> a = numbers<T>(3000);
  const std::vector<T> b(a.rbegin(), a.rend());
  const auto n = static_cast<std::int64_t>(a.size());
  const Tensor x = from_vector(a, {n}), y = from_vector(b, {n});
  const auto expect = [&](const char* what, const Tensor& got, auto formula) {
    ASSERT_EQ(got.dtype(), dtype_of<T>) << what;
    const std::vector<T> values = got.to_vector<T>();
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(values[i], formula(a[i], b[i])) << what << " of " << +a[i] << " and " << +b[i];
  };
  const auto u = [](T v) { return static_cast<std::uint64_t>(v); };
  expect("add", x + y, [&](T p, T q) { return wrapped<T>(u(p) + u(q)); });
  expect("sub", x - y, [&](T p, T q) { return wrapped<T>(u(p) - u(q)); });
  expect("mul", x * y, [&](T p, T q) { return wrapped<T>(u(p) * u(q)); });
  expect("neg", -x, [&](T p, T) { return wrapped<T>(0 - u(p)); });
  expect("abs", abs(x), [&](T p, T) { return p < T(0) ? wrapped<T>(0 - u(p)) : p; });
  expect("minimum", minimum(x, y), [](T p, T q) { return std::min(p, q); });
  expect("maximum", maximum(x, y), [](T p, T q) { return std::max(p, q); });
  expect("remainder", remainder(x, y), [](T p, T q) {
    if (q == 0 || (std::is_signed_v<T> && q == static_cast<T>(-1))) return T(0);
    const T r = static_cast<T>(p % q);
    return r != 0 && (r < T(0)) != (q < T(0)) ? static_cast<T>(r + q) : r;
  });
  expect("bitwise_not", bitwise_not(x), [](T p, T) { return static_cast<T>(~p); });
  expect("bitwise_xor", bitwise_xor(x, y), [](T p, T q) { return static_cast<T>(p ^ q); });
  expect("right_shift", right_shift(x, 3), [](T p, T) { return static_cast<T>(p >> 3); });
  expect("left_shift", left_shift(x, 3), [&](T p, T) { return wrapped<T>(u(p) << 3); });
  expect("right_shift by all", right_shift(x, 64),
         [](T p, T) { return p < T(0) ? static_cast<T>(-1) : T(0); });
  expect("where", where(x > y, x, y), [](T p, T q) { return std::max(p, q); });
  expect("clamp", clamp(x, 3, 100), [](T p, T) { return std::clamp(p, T(3), T(100)); });
  expect("relu", relu(x), [](T p, T) { return std::max(p, T(0)); });
  expect("sign", sign(x), [](T p, T) { return static_cast<T>(p > T(0) ? 1 : p < T(0) ? -1 : 0); });
  expect("pow", pow(x, 3), [&](T p, T) { return wrapped<T>(u(p) * u(p) * u(p)); });
}

TYPED_TEST(Integer, Comparisons) {
  using T = TypeParam;
  const std::vector<T> a = numbers<T>(500);
  const auto n = static_cast<std::int64_t>(a.size());
  const Tensor x = from_vector(a, {n, 1}), y = from_vector(a, {1, n});
  const std::vector<bool> less_than = (x < y).to_vector<bool>(),
                          at_least = (x >= y).to_vector<bool>(),
                          same = equal(x, y).to_vector<bool>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a.size(); ++j) {
      ASSERT_EQ(less_than[i * a.size() + j], a[i] < a[j]) << +a[i] << " " << +a[j];
      ASSERT_EQ(at_least[i * a.size() + j], a[i] >= a[j]);
      ASSERT_EQ(same[i * a.size() + j], a[i] == a[j]);
    }
  }
}

TYPED_TEST(Integer, BecomesEveryDtypeAndComesBack) {
  using T = TypeParam;
  const std::vector<T> a = numbers<T>(300);
  const Tensor x = from_vector(a, {300});
  for (DType to : real_dtypes) {
    visit(to, [&]<class To>(std::type_identity<To>) {
      const std::vector<To> got = x.to(to).to_vector<To>();
      for (std::size_t i = 0; i < a.size(); ++i) {
        // Floats narrower than f64 are rounded from that.
        const To want = is_floating(to) ? convert<To>(convert<double>(a[i])) : convert<To>(a[i]);
        const To number = got[i];  // std::vector<bool> has no bool to refer to
        ASSERT_EQ(convert<double>(number), convert<double>(want)) << name(to) << " of " << +a[i];
      }
    });
  }
  const std::vector<double> fractions{-1e30, -3.7, -0.5, 0,
                                      0.5,   2.9,  1e30, std::numeric_limits<double>::quiet_NaN()};
  const std::vector<T> whole = from_vector(fractions, {8}).to(dtype_of<T>).template to_vector<T>();
  for (std::size_t i = 0; i < fractions.size(); ++i)
    EXPECT_EQ(whole[i], convert<T>(fractions[i])) << fractions[i];
  EXPECT_EQ(whole.front(), std::numeric_limits<T>::min());
  EXPECT_EQ(whole[6], std::numeric_limits<T>::max());
}

TYPED_TEST(Integer, ReductionsAndOrder) {
  using T = TypeParam;
  const std::vector<T> a = numbers<T>(6000);
  const Tensor x = from_vector(a, {60, 100});
  const DType wide = dtype_of<T> == DType::u64 ? DType::u64 : DType::i64;
  EXPECT_EQ(reduce(x, "a b ->", "max").template item<T>(), std::numeric_limits<T>::max());
  EXPECT_EQ(reduce(x, "a b ->", "min").template item<T>(), std::numeric_limits<T>::min());
  const auto sums = reduce(x, "a b -> b", "sum"), running = cumsum(x, "[a] b");
  EXPECT_EQ(sums.dtype(), wide);
  EXPECT_EQ(running.dtype(), wide);
  for (std::size_t j = 0; j < 100; ++j) {
    std::uint64_t sum = 0;
    T greatest = a[j];
    for (std::size_t i = 0; i < 60; ++i) {
      sum += static_cast<std::uint64_t>(a[i * 100 + j]);
      greatest = std::max(greatest, a[i * 100 + j]);
    }
    EXPECT_EQ(sums.to(DType::u64)[static_cast<std::int64_t>(j)].template item<std::uint64_t>(),
              sum);
    EXPECT_EQ(
        running.to(DType::u64)[59][static_cast<std::int64_t>(j)].template item<std::uint64_t>(),
        sum);
    EXPECT_EQ(reduce(x, "a b -> b", "max")[static_cast<std::int64_t>(j)].template item<T>(),
              greatest);
  }
  std::vector<T> in_order = a;
  std::sort(in_order.begin(), in_order.end());
  EXPECT_EQ(sort(x.view({6000}), "[a]").values.template to_vector<T>(), in_order);
  EXPECT_EQ(argmax(x.view({6000}), "[a]").template item<std::int64_t>(), 1);
  EXPECT_EQ(argmin(x.view({6000}), "[a]").template item<std::int64_t>(),
            std::min_element(a.begin(), a.end()) - a.begin());
}

TYPED_TEST(Integer, ContractionsAddInSixtyFourBits) {
  using T = TypeParam;
  const std::vector<T> a = numbers<T>(40 * 50), b = numbers<T>(50 * 30);
  const Tensor got = einsum(from_vector(a, {40, 50}), from_vector(b, {50, 30}), "i k, k j -> i j");
  EXPECT_EQ(got.dtype(), (dtype_of<T> == DType::u64 ? DType::u64 : DType::i64));
  const std::vector<std::uint64_t> values = got.to(DType::u64).to_vector<std::uint64_t>();
  for (std::size_t i = 0; i < 40; ++i) {
    for (std::size_t j = 0; j < 30; ++j) {
      std::uint64_t sum = 0;
      for (std::size_t k = 0; k < 50; ++k)
        sum +=
            static_cast<std::uint64_t>(a[i * 50 + k]) * static_cast<std::uint64_t>(b[k * 30 + j]);
      ASSERT_EQ(values[i * 30 + j], sum);
    }
  }
}

TYPED_TEST(Integer, PositionsAndSums) {
  using T = TypeParam;
  const Tensor x = arange(6) * 10, at = from_vector(std::vector<T>{5, 0, 5}, {3});
  EXPECT_EQ(gather(x, at, "[v], p -> p").template to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{50, 0, 50}));
  EXPECT_EQ(one_hot(at, "p -> p [v]", "v"_a = 6, DType::i8)[2].template to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{0, 0, 0, 0, 0, 1}));
  test::expect_error([&] { gather(x, from_vector(std::vector<T>{6}, {1}), "[v], p -> p"); },
                     ErrorKind::value, {"position 6"});
  const Tensor values = from_vector(std::vector<T>{std::numeric_limits<T>::max(), 1, 2}, {3});
  const Tensor sums = scatter_add(values, at, "p, p -> [v]", "v"_a = 6);
  EXPECT_EQ(sums.to(DType::u64)[5].template item<std::uint64_t>(),
            static_cast<std::uint64_t>(std::numeric_limits<T>::max()) + 2);
}

TYPED_TEST(Integer, TheSameInsideACompiledFunction) {
  using T = TypeParam;
  const Tensor x = from_vector(numbers<T>(500), {500}),
               y = from_vector(numbers<T>(501), {501}).at({slice(1, 501)});
  auto f = compile([](const Tensor& p, const Tensor& q) {
    return where(p < q, remainder(p, maximum(q, 1)), p * q);
  });
  EXPECT_EQ(f(x, y).template to_vector<T>(),
            where(x < y, remainder(x, maximum(y, 1)), x * y).template to_vector<T>());
}

TEST(UnsignedIntegers, QuotientsAndFractions) {
  const Tensor x = from_vector(std::vector<std::uint64_t>{most, half, 6}, {3});
  EXPECT_EQ((x / 2).to_vector<float>(), (std::vector<float>{0x1p63F, 0x1p62F, 3}));
  EXPECT_EQ((x / x).to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ((x * 0.5).dtype(), DType::f32);
  EXPECT_EQ(x.to(DType::f64).to_vector<double>(), (std::vector<double>{0x1p64, 0x1p63, 6}));
  EXPECT_EQ(sqrt(x).to_vector<float>()[1], std::sqrt(0x1p63F));
  EXPECT_EQ((from_vector(std::vector<std::uint8_t>{7}, {1}) / 2).to_vector<float>()[0], 3.5F);
}

TEST(UnsignedIntegers, NumbersBesideThem) {
  const Tensor x = from_vector(std::vector<std::uint64_t>{most, half, 6}, {3});
  EXPECT_EQ(equal(x, most).to_vector<bool>(), (std::vector<bool>{true, false, false}));
  EXPECT_EQ((x >= half).to_vector<bool>(), (std::vector<bool>{true, true, false}));
  EXPECT_EQ((x - half).to_vector<std::uint64_t>(),
            (std::vector<std::uint64_t>{half - 1, 0, half + 6}));
  EXPECT_EQ(full({2}, most, DType::u64).to_vector<std::uint64_t>(),
            (std::vector<std::uint64_t>{most, most}));
  EXPECT_EQ(full({1}, half + 1, DType::u64).item<std::uint64_t>(), half + 1);
  EXPECT_EQ((full({1}, 3, DType::u8) < 300).item<bool>(), true);
  EXPECT_EQ(to_string(x), "[18446744073709551615, 9223372036854775808, 6]");
  EXPECT_FALSE(all_close(x, x - 1, 0, 0));
  EXPECT_EQ(tril(full({2, 2}, most, DType::u64), "... [i j]").to_vector<std::uint64_t>(),
            (std::vector<std::uint64_t>{most, 0, most, most}));
  for (const auto& wrong :
       {std::function<void()>([&] { x + -1; }), std::function<void()>([&] { less(x, -1); }),
        std::function<void()>([&] { clamp(x, -3, 3); }),
        std::function<void()>([&] { where(x > 3, x, -1); })}) {
    test::expect_error(wrong, ErrorKind::dtype, {"u64 has no -", "ein::DType::i64"});
  }
}

TEST(UnsignedIntegers, HaveNoCommonDtypeWithSigns) {
  const Tensor x = ones({2}, DType::u64);
  for (DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64}) {
    test::expect_error([&] { x + ones({2}, dtype); }, ErrorKind::dtype,
                       {"u64", std::string(name(dtype)), ".to(dtype)"});
  }
  EXPECT_EQ((ones({2}, DType::u32) + ones({2}, DType::i32)).dtype(), DType::i64);
  EXPECT_EQ((ones({2}, DType::u8) + ones({2}, DType::i8)).dtype(), DType::i16);
  EXPECT_EQ((x + ones({2}, DType::f16)).dtype(), DType::f16);
  EXPECT_EQ((x + ones({2}, DType::boolean)).dtype(), DType::u64);
}

TEST(UnsignedIntegers, TheOrderIsThatOfTheElements) {
  const Tensor x = from_vector(std::vector<std::int32_t>{-1, 3}, {2}),
               y = from_vector(std::vector<std::uint64_t>{most, 3}, {2});
  EXPECT_EQ(reduce(x, "a ->", "max", as(DType::u64)).item<std::uint64_t>(), 3u);
  EXPECT_EQ(reduce(y, "a ->", "min", as(DType::i64)).item<std::int64_t>(), 3);
  EXPECT_EQ(reduce(y, "a ->", "max", as(DType::f64)).item<double>(), 0x1p64);
}

TEST(UnsignedIntegers, HaveNoGradients) {
  test::expect_error([] { ones({2}, DType::u16).requires_grad(true); }, ErrorKind::dtype, {"u16"});
}

TEST(TypedIntegers, AreNamedInTypes) {
  const UInt16<"a b"> x = ones({2, 3}, DType::u16);
  const Int8<"a"> y = reduce<"a b -> a">(x, "max").to(DType::i8);
  EXPECT_EQ(y.dtype(), DType::i8);
  static_assert(std::is_same_v<UInt64<"a">::Element, std::uint64_t> &&
                std::is_same_v<Float8E4M3<"a">::Element, f8e4m3>);
  test::expect_error([] { const UInt32<"a"> z = ones({2}, DType::i32); }, ErrorKind::dtype,
                     {"u32", "i32"});
}

}  // namespace
}  // namespace ein
