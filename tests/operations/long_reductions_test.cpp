// Every reduction of a billion elements, at the ends of each dtype's range, beside f128.
//
// A sum adds up to 32 numbers one by one, then such sums in the same way (run_length): of 2^32
// elements each goes through at most 7 levels of 32, so that the error is at most 7 · 32 half
// digits of the sum of magnitudes, and with lanes and pieces for threads about √ of that. The bound
// here is 64 half digits: a sum one by one is wrong by far more, as a counter in f32 stays at 2^24.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ein/complex.hpp>
#include <ein/ein.hpp>
#include <ein/error.hpp>

#include "support/repeated_memory.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using Wide = __float128;

constexpr Wide infinity = std::numeric_limits<double>::infinity();
constexpr Wide not_a_number = std::numeric_limits<double>::quiet_NaN();

Wide magnitude(Wide x) { return x < 0 ? -x : x; }
Wide root(Wide x) {
  if (x == 0 || !(magnitude(x) < infinity)) return x;
  // Squares of f64 leave the range of long double in neither direction.
  const Wide near = std::sqrt(static_cast<long double>(x));
  return (near + x / near) / 2;
}

struct Number {
  Wide re = 0, im = 0;

  Number() = default;
  Number(Wide real, Wide imaginary = 0) : re(real), im(imaginary) {}
  bool is_nan() const { return re != re || im != im; }
  bool is_zero() const { return re == 0 && im == 0; }
  Wide square() const { return im == 0 ? re * re : re * re + im * im; }
  Wide size() const { return im == 0 ? magnitude(re) : root(square()); }
};
Number operator+(const Number& a, const Number& b) { return {a.re + b.re, a.im + b.im}; }
Number operator-(const Number& a, const Number& b) { return {a.re - b.re, a.im - b.im}; }
Number operator*(const Number& a, const Number& b) {
  if (a.im == 0 && b.im == 0) return {a.re * b.re};
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
Number times(const Number& a, Wide n) {
  return a.im == 0 ? Number(a.re * n) : Number(a.re * n, a.im * n);
}

/// Elements repeat seven of them: a number that no stride and no count of lanes divides.
constexpr std::int64_t period = 7;

struct Data {
  std::string what;
  std::array<Number, period> block;
  std::vector<Reduction> of{};                            // all, if there are none
  std::vector<std::pair<std::int64_t, Number>> others{};  // elements, from the end where below 0
};

/// A value, and how often it is among the elements.
struct Group {
  Number value;
  std::int64_t count;
};
using Groups = std::vector<Group>;

// --- tensors ---

/// One row; or columns that lie apart, of which elements lie apart too.
struct Form {
  std::int64_t length;
  bool in_columns;

  Shape shape() const { return in_columns ? Shape{length, columns} : Shape{length}; }
  Strides strides() const { return in_columns ? Strides{5, 2} : Strides{1}; }
  std::int64_t place(std::int64_t i, std::int64_t column) const {
    return in_columns ? 5 * i + 2 * column : i;
  }
  std::int64_t count() const { return in_columns ? columns : 1; }

  static constexpr std::int64_t columns = 3;
};

/// A whole number, modulo 2^64.
std::uint64_t bits_of(Wide x) {
  return x < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(x))
               : static_cast<std::uint64_t>(x);
}
template <class T>
T element(Wide x) {
  if constexpr (std::is_same_v<T, bool>)
    return x != 0;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(bits_of(x));
  else
    return convert<T>(static_cast<double>(x));
}
template <class T>
Wide wide(T x) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return convert<double>(x);
}

/// The data as elements of the dtype: what it holds of them.
Data stored(Data data, DType dtype) {
  visit(real_dtype(dtype), [&]<class T>(std::type_identity<T>) {
    const auto store = [](Number& x) { x = {wide(element<T>(x.re)), wide(element<T>(x.im))}; };
    for (Number& x : data.block) store(x);
    for (auto& other : data.others) store(other.second);
  });
  return data;
}

Tensor tensor_of(const Data& data, DType dtype, const Form& form) {
  return visit(real_dtype(dtype), [&]<class T>(std::type_identity<T>) {
    const std::size_t parts = is_complex(dtype) ? 2 : 1;
    std::vector<T> block;
    for (const Number& x : data.block) {
      block.push_back(element<T>(x.re));
      if (parts == 2) block.push_back(element<T>(x.im));
    }
    const auto last = static_cast<std::size_t>(form.place(form.length - 1, form.count() - 1));
    auto* const bytes = new T[block.size()];
    std::copy(block.begin(), block.end(), bytes);
    const std::shared_ptr<Storage> storage =
        test::repeated_memory({reinterpret_cast<const std::byte*>(bytes), block.size() * sizeof(T)},
                              (last + 1) * parts * sizeof(T));
    delete[] bytes;
    for (const auto& [i, x] : data.others) {
      for (std::int64_t column = 0; column < form.count(); ++column) {
        const std::int64_t place = form.place(i < 0 ? form.length + i : i, column);
        T* const at = reinterpret_cast<T*>(storage->data()) + place * static_cast<int>(parts);
        at[0] = element<T>(x.re);
        if (parts == 2) at[1] = element<T>(x.im);
      }
    }
    return Tensor(storage, dtype, form.shape(), form.strides());
  });
}

Groups groups_of(const Data& data, const Form& form, std::int64_t column) {
  std::array<std::int64_t, period> counts{};
  const auto at = [&](std::int64_t i) {
    return static_cast<std::size_t>(form.place(i % period, column) % period);
  };
  for (std::int64_t i = 0; i < period; ++i)
    counts[at(i)] += form.length / period + (i < form.length % period);
  Groups groups;
  for (const auto& [i, x] : data.others) {
    --counts[at(i < 0 ? form.length + i : i)];
    groups.push_back({x, 1});
  }
  for (std::size_t j = 0; j < period; ++j) groups.push_back({data.block[j], counts[j]});
  std::erase_if(groups, [](const Group& group) { return group.count == 0; });
  return groups;
}

// --- what reductions ought to be ---

/// Numbers between which a result is, of each part; all NaN for NaN.
struct Bounds {
  Number least, greatest;
};
Bounds exactly(const Number& x) { return {x, x}; }
Bounds around(const Number& x, Wide allowed) {
  if (!(allowed < infinity)) return exactly(x);
  return {{x.re - allowed, x.im - allowed}, {x.re + allowed, x.im + allowed}};
}

constexpr int half_digits = 64;

struct Sums {
  Wide count = 0, magnitudes = 0;
  Number sum;

  explicit Sums(const Groups& groups) {
    for (const Group& group : groups) {
      count += group.count;
      sum = sum + times(group.value, group.count);
      magnitudes += group.value.size() * group.count;
    }
  }
  Number mean() const { return times(sum, 1 / count); }
  Wide mean_size() const { return magnitudes / count; }
};

Wide squares_about(const Groups& groups, const Number& centre) {
  Wide sum = 0;
  for (const Group& group : groups) sum += (group.value - centre).square() * group.count;
  return sum;
}

/// The error of the centre, and the square of it that variance() subtracts, is part of the bound.
Bounds variance(const Groups& groups, Wide half_digit, bool is_sample, bool takes_root) {
  const Sums sums(groups);
  const Wide value = squares_about(groups, sums.mean()) / sums.count,
             centre = half_digits * half_digit * sums.mean_size(),
             error = 2 * half_digits * half_digit * (value + centre * centre),
             scale = is_sample ? sums.count / (sums.count - 1) : 1;
  if (value != value || !(error < infinity)) return exactly(not_a_number);
  Wide least = std::max<Wide>(0, (value - error) * scale), greatest = (value + error) * scale;
  if (takes_root)
    least = root(least) * (1 - 4 * half_digit), greatest = root(greatest) * (1 + 4 * half_digit);
  return {least, greatest};
}

Number product(const Groups& groups) {
  std::int64_t common = std::numeric_limits<std::int64_t>::max();
  for (const Group& group : groups) common = std::min(common, group.count);
  const auto power = [](Number base, std::int64_t exponent) {
    Number result = 1;
    for (; exponent > 0; exponent /= 2) {
      if (exponent % 2 == 1) result = result * base;
      if (exponent > 1) base = base * base;
    }
    return result;
  };
  Number block = 1, rest = 1;
  for (const Group& group : groups) {
    block = block * group.value;
    rest = rest * power(group.value, group.count - common);
  }
  return power(block, common) * rest;
}

Bounds log_sum_exp(const Groups& groups, Wide half_digit) {
  Wide most = -infinity;
  for (const Group& group : groups) {
    if (group.value.is_nan()) return exactly(not_a_number);
    most = std::max(most, group.value.re);
  }
  if (most == infinity || most == -infinity) return exactly(most);
  long double sum = 0;
  for (const Group& group : groups)
    sum += std::exp(static_cast<long double>(group.value.re - most)) *
           static_cast<long double>(group.count);
  const Wide value = most + std::log(sum);
  return around(value, 2 * half_digits * half_digit + 4 * half_digit * magnitude(value));
}

Bounds extreme(const Groups& groups, bool is_max) {
  Wide result = is_max ? -infinity : infinity;
  for (const Group& group : groups) {
    if (group.value.is_nan()) return exactly(not_a_number);
    result = is_max ? std::max(result, group.value.re) : std::min(result, group.value.re);
  }
  return exactly(groups.empty() ? not_a_number : result);
}

/// Of floats and complex numbers of this dtype.
Bounds expected(Reduction reduction, const Groups& all, DType dtype) {
  Groups numbers = all;
  std::erase_if(numbers, [](const Group& group) { return group.value.is_nan(); });
  const bool is_f64 = real_dtype(dtype) == DType::f64;
  const Wide half_digit = is_f64 ? 0x1p-53 : 0x1p-24, least = is_f64 ? 0x1p-1074 : 0x1p-149;
  const auto sum = [&](const Groups& of) {
    const Sums sums(of);
    return around(sums.sum, half_digits * half_digit * sums.magnitudes);
  };
  const auto mean = [&](const Groups& of) {
    const Sums sums(of);
    return around(sums.mean(), half_digits * half_digit * sums.mean_size() + least);
  };
  switch (reduction) {
    case Reduction::sum:
      return sum(all);
    case Reduction::nansum:
      return sum(numbers);
    case Reduction::mean:
      return mean(all);
    case Reduction::nanmean:
      return mean(numbers);
    case Reduction::max:
    case Reduction::min:
      return extreme(all, reduction == Reduction::max);
    case Reduction::nanmax:
    case Reduction::nanmin:
      return extreme(numbers, reduction == Reduction::nanmax);
    case Reduction::prod:
      return exactly(product(all));
    case Reduction::nanprod:
      return exactly(product(numbers));
    case Reduction::any:
      return exactly(std::any_of(all.begin(), all.end(),
                                 [](const Group& group) { return !group.value.is_zero(); })
                         ? 1
                         : 0);
    case Reduction::all:
      return exactly(std::none_of(all.begin(), all.end(),
                                  [](const Group& group) { return group.value.is_zero(); })
                         ? 1
                         : 0);
    case Reduction::logsumexp:
      return log_sum_exp(all, half_digit);
    case Reduction::var:
    case Reduction::std:
      return variance(all, half_digit, false, reduction == Reduction::std);
    case Reduction::sample_var:
    case Reduction::sample_std:
      return variance(all, half_digit, true, reduction == Reduction::sample_std);
    case Reduction::nanvar:
    case Reduction::nanstd:
      return variance(numbers, half_digit, false, reduction == Reduction::nanstd);
    case Reduction::norm: {  // in f64
      const Wide value = root(squares_about(all, 0));
      return around(value, value * half_digits * 0x1p-53 + least);
    }
  }
  ADD_FAILURE() << "no reference for " << name(reduction);
  return {};
}

/// Of integers of this dtype, modulo 2^64.
std::uint64_t expected_integer(Reduction reduction, const Groups& groups) {
  std::uint64_t sum = 0, prod = 1;
  for (const Group& group : groups) {
    std::uint64_t power = bits_of(group.value.re);
    sum += power * static_cast<std::uint64_t>(group.count);
    for (std::int64_t n = group.count; n > 0; n /= 2, power *= power) {
      if (n % 2 == 1) prod *= power;
    }
  }
  if (reduction == Reduction::sum) return sum;
  if (reduction == Reduction::prod) return prod;
  return bits_of(expected(reduction, groups, DType::f64).least.re);
}

// --- comparing ---

void expect_between(double found, Wide least, Wide greatest, DType dtype, const std::string& what) {
  if (least != least || greatest != greatest) {
    EXPECT_TRUE(std::isnan(found)) << what << ": " << found;
    return;
  }
  // Rounding is monotone: what is rounded lies between the rounded bounds.
  const double low = test::stored(static_cast<double>(least), dtype),
               high = test::stored(static_cast<double>(greatest), dtype);
  EXPECT_TRUE(low <= found && found <= high)
      << what << ": " << found << ", not from " << low << " to " << high;
}

bool is_defined(Reduction reduction, DType dtype) {
  try {
    reduce(ones({2}, dtype), "n ->", reduction);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::dtype);
    return false;
  }
}

/// Compares all reductions that the data is for; gives how many of them the dtype has.
int check(const Data& given, DType dtype, const Form& form) {
  const Data data = stored(given, dtype);
  const Tensor x = tensor_of(data, dtype, form);
  int defined = 0;
  for (std::size_t r = 0; r < std::size(detail::reduction_names); ++r) {
    const auto reduction = static_cast<Reduction>(r);
    if (!data.of.empty() && std::find(data.of.begin(), data.of.end(), reduction) == data.of.end())
      continue;
    if (!is_defined(reduction, dtype)) continue;
    ++defined;
    const Tensor result = form.in_columns ? reduce(x, "n c -> c", reduction)
                                          : reduce(x, "n ->", reduction).reshape({1});
    for (std::int64_t column = 0; column < form.count(); ++column) {
      const std::string what = std::string(name(reduction)) + " of " + data.what + " in " +
                               std::string(name(dtype)) + ", " + std::to_string(form.length) +
                               (form.in_columns ? " rows" : " elements");
      const Groups groups = groups_of(data, form, column);
      const Tensor found = result(column);
      if (is_integral(dtype)) {
        EXPECT_EQ(found.dtype() == DType::u64
                      ? found.item<std::uint64_t>()
                      : static_cast<std::uint64_t>(found.item<std::int64_t>()),
                  expected_integer(reduction, groups))
            << what;
        continue;
      }
      const Bounds bounds = expected(reduction, groups, dtype);
      const DType part = real_dtype(found.dtype());
      if (!is_complex(found.dtype())) {
        expect_between(found.to(DType::f64).item<double>(), bounds.least.re, bounds.greatest.re,
                       part, what);
        continue;
      }
      expect_between(real(found).to(DType::f64).item<double>(), bounds.least.re, bounds.greatest.re,
                     part, what + ", real part");
      expect_between(imag(found).to(DType::f64).item<double>(), bounds.least.im, bounds.greatest.im,
                     part, what + ", imaginary part");
    }
  }
  return defined;
}

// --- the data ---

struct Range {
  Wide most, least, digit;  // digit: what follows 1, less 1
};
Range range_of(DType dtype) {
  switch (real_dtype(dtype)) {
    case DType::f64:
      return {std::numeric_limits<double>::max(), 0x1p-1074, 0x1p-52};
    case DType::f32:
      return {std::numeric_limits<float>::max(), 0x1p-149, 0x1p-23};
    case DType::f16:
      return {65504, 0x1p-24, 0x1p-10};
    case DType::bf16:
      return {0x1.fep127, 0x1p-133, 0x1p-7};
    case DType::f8e4m3:
      return {448, 0x1p-9, 0x1p-3};
    case DType::f8e5m2:
      return {57344, 0x1p-16, 0x1p-2};
    default:
      throw std::runtime_error("a float that the test lacks");
  }
}

using R = Reduction;
const std::vector<Reduction> sums = {R::sum, R::mean, R::nansum, R::nanmean},
                             variances = {R::var, R::sample_std, R::nanstd},
                             that_skip = {R::nansum,  R::nanmean, R::nanmax, R::nanmin,
                                          R::nanprod, R::nanvar,  R::nanstd};

std::vector<Reduction> with(std::vector<Reduction> some, const std::vector<Reduction>& others) {
  some.insert(some.end(), others.begin(), others.end());
  return some;
}
std::array<Number, period> all(const Number& x) { return {x, x, x, x, x, x, x}; }

/// Products of these are powers of two, whatever is multiplied first.
const Data ordinary{"ordinary numbers", {1, -2, 0.5, -1, 2, -0.5, 1}};

std::vector<Data> data_of_floats(DType dtype, std::int64_t n) {
  const Range range = range_of(dtype);
  const Wide edge = 0.99, nan = not_a_number,
             most_sum = dtype == DType::f64 ? range.most
                                            : static_cast<Wide>(std::numeric_limits<float>::max()),
             summed = std::min(range.most, edge * most_sum / n),
             squared = std::min(range.most, edge * root(most_sum / n)), t = range.least,
             m = range.most, d = range.digit;
  const auto far = [&](int k) { return Number(16 * (1 + k * d)); };
  std::vector<Data> result = {
      ordinary,
      {"ones", all(1), with(sums, {R::prod, R::var, R::norm, R::logsumexp})},
      {"numbers whose sum is near the end", all(summed), sums},
      {"numbers whose squares are near the end",
       {squared, -squared, squared, -squared, squared, -squared, squared},
       variances},
      {"the largest numbers", {m, -m, m, m, -m, -m, m}, {R::max, R::min, R::norm, R::logsumexp}},
      {"the lowest number", all(-m), {R::max, R::nanmax, R::logsumexp}},
      {"the greatest number", all(m), {R::min, R::nanmin}},
      {"numbers with norms in the range", all(m / 0x1p+20), {R::norm}},
      {"subnormal numbers",
       {t, 2 * t, -t, 3 * t, t, 0, 5 * t},
       {R::sum, R::mean, R::max, R::min, R::norm, R::nansum, R::nanmean, R::any, R::all}},
      {"numbers far from 0 and near each other",
       {far(0), far(1), far(2), far(3), far(0), far(1), far(3)},
       variances},
      {"numbers and NaN", {1, nan, 0.5, -1, 2, -0.5, -2}},
      {"NaN but for the last", all(nan), that_skip, {{-1, 3}}},
      {"0 but for the last",
       all(0),
       {R::sum, R::mean, R::max, R::min, R::prod, R::any, R::all, R::norm, R::nanvar},
       {{-1, 1}}},
      {"1 but for the last", all(1), {R::all, R::min, R::prod}, {{-1, 0}}},
      {"a NaN at the end", all(1), {R::sum, R::max, R::min, R::norm}, {{-1, nan}}}};
  if (dtype != DType::f8e4m3) {
    result.push_back(
        {"an infinity at the end",
         all(1),
         with(variances, {R::sum, R::mean, R::max, R::min, R::norm, R::logsumexp, R::nanmean}),
         {{-1, infinity}}});
    result.push_back({"-inf but for the last",
                      all(-infinity),
                      {R::max, R::min, R::logsumexp, R::nanmax},
                      {{-1, 1}}});
  }
  return result;
}

std::vector<Data> data_of_complex(DType dtype, std::int64_t n) {
  const Wide most = range_of(dtype).most, summed = most / n * 0.99,
             squared = root(most / n) * 0.99 / 2;
  // Products are of the first half by the second, and so on: of numbers that differ in size, equal
  // ones may meet until they overflow.
  return {
      {"complex numbers of size 1", {1, {0, -1}, -1, -1, {0, 1}, {0, -1}, {0, 1}}},
      {"complex numbers", {1, {3, -2}, 0.5, -1, {0, 2}, {4, -0.5}, {0, 1}}, with(variances, sums)},
      {"complex numbers whose sum is near the end", all({summed, -summed}), sums},
      {"complex numbers whose squares are near the end",
       {Number(squared, squared), Number(-squared, squared), Number(squared, -squared),
        Number(-squared, -squared), Number(squared), Number(-squared), Number(0)},
       variances},
      {"0 but for the last", all(0), {}, {{-1, {0, 1}}}},
      {"i but for the last", all({0, 1}), {R::all, R::prod, R::sum}, {{-1, 0}}}};
}

std::vector<Data> data_of_integers(DType dtype) {
  return visit(dtype, [&]<class T>(std::type_identity<T>) -> std::vector<Data> {
    if constexpr (!std::is_integral_v<T>)
      return {};
    else {
      const Wide least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max(),
                 below = least < 0 ? -1 : 0;
      return {{"integers", {least, most, below, 1, most, 0, least}},
              {"the greatest integer", all(most), {R::sum, R::min, R::all}},
              {"the least integer", all(least), {R::sum, R::max, R::any}},
              {"odd integers", {3, most, 5, below + below + 1, 7, most, 9}, {R::prod, R::sum}},
              {"0 but for the last", all(0), {R::sum, R::max, R::any}, {{-1, most}}},
              {"1 but for the last", all(1), {R::prod, R::min, R::all}, {{-1, 0}}}};
    }
  });
}

std::vector<Data> data_of(DType dtype, std::int64_t n) {
  if (is_complex(dtype)) return data_of_complex(dtype, n);
  return is_integral(dtype) ? data_of_integers(dtype) : data_of_floats(dtype, n);
}

constexpr DType dtypes[] = {
#define EIN_DTYPE(dtype, ...) DType::dtype,
#define EIN_COMPLEX EIN_DTYPE
#include <ein/detail/dtypes.hpp>
};

class LongReductions : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, LongReductions, testing::ValuesIn(dtypes),
                         [](const auto& info) { return std::string(name(info.param)); });

void check_all(DType dtype, const Form& form) {
  int most = 0;
  for (const Data& data : data_of(dtype, form.length))
    most = std::max(most, check(data, dtype, form));
  const int of_all = static_cast<int>(std::size(detail::reduction_names));
  EXPECT_EQ(most, is_complex(dtype) ? 9 : is_floating(dtype) ? of_all : 6);
}

TEST_P(LongReductions, Short) {
  for (const std::int64_t n : {1031, 70001}) {
    check_all(GetParam(), {n, false});
    check_all(GetParam(), {n, true});
  }
}

/// Those of complex numbers take ten times as long as others of f32.
TEST_P(LongReductions, SlowOfOneRow) {
  check_all(GetParam(), {(is_complex(GetParam()) ? 1 << 27 : 1 << 30) + 21, false});
}

/// Past 2^24 elements each, at which a counter in f32 would stay.
TEST_P(LongReductions, SlowOfColumns) {
  const std::int64_t n = (is_complex(GetParam())    ? 1 << 25
                          : size_of(GetParam()) > 4 ? 1 << 26
                                                    : 1 << 27) +
                         21;
  check(data_of(GetParam(), n)[0], GetParam(), {n, true});
}

/// Σ x · x of one row, and of each two columns. Products of matrices add 256 to 16384 terms one by
/// one, and then such sums one by one: less exact than a reduction, but ones are counted.
void check_products(const Data& given, DType dtype, const Form& form) {
  const Data data = stored(given, dtype);
  const Tensor x = tensor_of(data, dtype, form);
  const bool is_f64 = real_dtype(dtype) == DType::f64;
  const DType result = is_integral(dtype) || is_complex(dtype) ? sum_dtype(dtype)
                       : is_f64                                ? DType::f64
                                                               : DType::f32;
  const Wide allowed =
      (16384 + static_cast<Wide>(form.length) / 256) * (is_f64 ? 0x1p-53 : 0x1p-24);
  const Tensor products = form.in_columns ? einsum(x, x, "n a, n b -> a b", as(result))
                                          : einsum(x, x, "n, n ->", as(result)).reshape({1, 1});
  for (std::int64_t a = 0; a < form.count(); ++a) {
    for (std::int64_t b = 0; b < form.count(); ++b) {
      Number sum;
      Wide magnitudes = 0;
      std::uint64_t bits = 0;  // of integers: the sum modulo 2^64
      for (std::int64_t i = 0; i < period; ++i) {
        const auto at = [&](std::int64_t column) {
          return data.block[static_cast<std::size_t>(form.place(i, column) % period)];
        };
        const Number product = at(a) * at(b);
        const std::int64_t count = form.length / period + (i < form.length % period);
        sum = sum + times(product, count);
        magnitudes += magnitude(product.re) * count;
        if (is_integral(dtype))
          bits += bits_of(at(a).re) * bits_of(at(b).re) * static_cast<std::uint64_t>(count);
      }
      const Tensor found = products(a, b);
      const std::string what = "product " + std::to_string(a) + " " + std::to_string(b) + " of " +
                               data.what + ", " + std::to_string(form.length);
      if (is_integral(dtype)) {
        EXPECT_EQ(found.dtype() == DType::u64
                      ? found.item<std::uint64_t>()
                      : static_cast<std::uint64_t>(found.item<std::int64_t>()),
                  bits)
            << what;
        continue;
      }
      const Bounds bounds = around(sum, allowed * magnitudes);
      const Tensor part = is_complex(dtype) ? real(found) : found;
      expect_between(part.to(DType::f64).item<double>(), bounds.least.re, bounds.greatest.re,
                     part.dtype(), what);
    }
  }
}

TEST_P(LongReductions, ShortProducts) {
  for (const bool in_columns : {false, true})
    check_products(ordinary, GetParam(), {70001, in_columns});
}
TEST_P(LongReductions, SlowProducts) {
  const DType dtype = GetParam();
  const std::int64_t n = (is_complex(dtype)    ? 1 << 27
                          : is_integral(dtype) ? 1 << 28
                                               : 1 << 30) +
                         21;
  check_products(ordinary, dtype, {n, false});
  check_products(ordinary, dtype, {(1 << 25) + 21, true});
  if (is_integral(dtype) || real_dtype(dtype) == DType::f64) return;
  const Data ones{"ones", all(1)};
  check_products(ones, dtype, {n, false});
  check_products(ones, dtype, {(1 << 26) + 21, true});
}

// --- along an axis ---

/// Elements here and there, the first and the last.
std::vector<std::int64_t> some_of(std::int64_t n) {
  std::vector<std::int64_t> places;
  for (std::int64_t k = 0; k < 1000; ++k) places.push_back(n / 1000 * k + k % 13);
  for (std::int64_t k = 1; k <= 3; ++k) places.push_back(n - k);
  return places;
}

Tensor row(const Data& data, DType dtype, std::int64_t n) {
  return tensor_of(stored(data, dtype), dtype, {n, false});
}

/// Compares some elements of a result with f(place); exact ones unless half digits are allowed, of
/// these elements or of `size`.
template <class F>
void expect_some(const Tensor& result, F&& f, Wide allowed_half_digits = 0, Wide size = 0) {
  const Wide half_digit = result.dtype() == DType::f64 ? 0x1p-53 : 0x1p-24;
  for (const std::int64_t i : some_of(result.numel())) {
    const double found = result(i).item<double>();
    const Wide exact = f(i),
               allowed = allowed_half_digits * half_digit * std::max(size, magnitude(exact));
    ASSERT_LE(magnitude(found - exact), allowed)
        << "element " << i << ": " << found << ", not " << static_cast<double>(exact);
  }
}
Wide ordinary_product(std::int64_t count) {
  Wide product = count / period % 2 == 0 ? 1 : -1;
  for (std::int64_t i = 0; i < count % period; ++i)
    product *= ordinary.block[static_cast<std::size_t>(i)].re;
  return product;
}

void softmax_of(std::int64_t n, bool takes_log) {
  const Tensor x = row({"", all(0), {}, {{n / 2, 10}, {-1, 20}}}, DType::f32, n);
  const long double sum = static_cast<long double>(n - 2) + std::exp(10.0L) + std::exp(20.0L);
  const Tensor y = takes_log ? log_softmax(x, "[n]") : softmax(x, "[n]");
  const auto exact = [&](std::int64_t i) -> Wide {
    const long double e = i == n - 1 ? 20 : i == n / 2 ? 10 : 0;
    return takes_log ? e - std::log(sum) : std::exp(e) / sum;
  };
  expect_some(y, exact, 2 * half_digits, takes_log ? 20 : 0);
  const float middle = y(n / 2).item<float>();
  EXPECT_NEAR(middle, static_cast<double>(exact(n / 2)), std::abs(middle) * 1e-5);
}

/// Numbers whose squares are near the end.
void norm_of(std::int64_t n, bool takes_mean) {
  const double d = std::sqrt(std::numeric_limits<float>::max() / static_cast<double>(n)) * 0.5;
  const Data data = stored({"", {d, -d, d, -d, d, d, d}}, DType::f32);
  const Groups groups = groups_of(data, {n, false}, 0);
  const Number mean = takes_mean ? Sums(groups).mean() : Number(0);
  const Wide scale = root(squares_about(groups, mean) / n);
  const Tensor x = row(data, DType::f32, n);
  expect_some(
      takes_mean ? layer_norm(x, "[n]") : rms_norm(x, "[n]"),
      [&](std::int64_t i) -> Wide {
        return (data.block[static_cast<std::size_t>(i % period)].re - mean.re) / scale;
      },
      2 * half_digits);
}

void positions_of(std::int64_t n, bool of_greatest) {
  const auto place = [&](const Data& data, DType dtype) {
    const Tensor x = row(data, dtype, n);
    return (of_greatest ? argmax(x, "[n]") : argmin(x, "[n]")).item<std::int64_t>();
  };
  for (const DType dtype : dtypes) {
    const bool takes_long = n > 1 << 28 && size_of(dtype) == 8;
    if (is_complex(dtype) || takes_long) continue;
    SCOPED_TRACE(name(dtype));
    const Wide usual = of_greatest ? 0 : 1, best = of_greatest ? 1 : 0;
    EXPECT_EQ(place({"", all(usual)}, dtype), 0);
    EXPECT_EQ(place({"", all(usual), {}, {{-1, best}}}, dtype), n - 1);
    EXPECT_EQ(place({"", all(usual), {}, {{-1, best}, {-9, best}, {-3, best}}}, dtype), n - 9);
    if (is_floating(dtype)) {
      EXPECT_EQ(place({"", all(usual), {}, {{n / 2, best}, {-2, not_a_number}}}, dtype), n - 2);
    }
  }
  const Form form{n / 4, true};
  const Tensor x = tensor_of({"", all(5), {}, {{-1, of_greatest ? 6 : 4}}}, DType::i16, form);
  const Tensor result = of_greatest ? argmax(x, "[n] c") : argmin(x, "[n] c");
  EXPECT_EQ(result.to_vector<std::int64_t>(),
            std::vector<std::int64_t>(static_cast<std::size_t>(form.count()), form.length - 1));
}

/// Of three numbers in order that are far apart: 4/7, 2/7 and 1/7 of the elements.
void quantiles_of(std::int64_t n) {
  const Tensor x = row({"", {3, -1, 3, 0, 0, 3, 3}, {}, {{-1, -5}}}, DType::f16, n);
  EXPECT_EQ(median(x, "[n]").item<double>(), 3);
  const auto at = [&](double q) { return quantile(x, "[n]", q).item<double>(); };
  EXPECT_EQ(at(0), -5);
  EXPECT_EQ(at(0.1), -1);
  EXPECT_EQ(at(0.3), 0);
  EXPECT_EQ(at(1), 3);
}

/// What is compared of an operation along an axis of n elements, or of fewer where it takes up to
/// 40 bytes for each; false where nothing is.
bool check(Operation op, std::int64_t n) {
  const auto scanned = [n](const Data& data, DType dtype, auto&& scan, auto&& f, Wide allowed) {
    expect_some(scan(row(data, dtype, n)), f, allowed);
  };
  // Two places at which elements differ, so that the greatest up to each changes.
  const Data steps{"", all(0), {}, {{n / 3, 1}, {-2, 2}}},
      falls{"", all(2), {}, {{n / 3, 1}, {-2, 0}}};
  const auto step = [n](std::int64_t i) -> int { return i >= n - 2 ? 2 : i >= n / 3 ? 1 : 0; };
  const std::int64_t fewer = n / 8;
  const Tensor places = row(steps, DType::u8, n);
  switch (op) {
    case Operation::softmax:
    case Operation::log_softmax:
      softmax_of(n, op == Operation::log_softmax);
      return true;
    case Operation::layer_norm:
    case Operation::rms_norm:
      norm_of(n, op == Operation::layer_norm);
      return true;
    case Operation::argmax:
    case Operation::argmin:
      positions_of(n, op == Operation::argmax);
      return true;
    case Operation::cumsum: {
      const auto count = [](std::int64_t i) -> Wide { return i + 1; };
      const auto scan = [](const Tensor& x) { return cumsum(x, "[n]"); };
      scanned({"", all(1)}, DType::u8, scan, count, 0);
      scanned({"", all(1)}, DType::f32, scan, count, half_digits);
      return true;
    }
    case Operation::cumprod:
      scanned(
          ordinary, DType::f32, [](const Tensor& x) { return cumprod(x, "[n]"); },
          [](std::int64_t i) { return ordinary_product(i + 1); }, 0);
      return true;
    case Operation::cummax:
      scanned(
          steps, DType::i8, [](const Tensor& x) { return cummax(x, "[n]"); },
          [&](std::int64_t i) -> Wide { return step(i); }, 0);
      return true;
    case Operation::cummin:
      scanned(
          falls, DType::bf16, [](const Tensor& x) { return cummin(x, "[n]"); },
          [&](std::int64_t i) -> Wide { return 2 - step(i); }, 0);
      return true;
    case Operation::logcumsumexp:
      expect_some(
          logcumsumexp(row({"", all(1)}, DType::f32, fewer), "[n]"),
          [](std::int64_t i) -> Wide { return 1 + std::log(static_cast<long double>(i + 1)); },
          2 * half_digits);
      return true;
    case Operation::top_k: {
      const Sorted found =
          top_k(row({"", all(0), {}, {{fewer / 3, 1}, {-2, 2}}}, DType::f16, fewer), "[n]", 3);
      EXPECT_EQ(found.values.to_vector<double>(), (std::vector<double>{2, 1, 0}));
      EXPECT_EQ(found.positions.to_vector<std::int64_t>(),
                (std::vector<std::int64_t>{fewer - 2, fewer / 3, 0}));
      return true;
    }
    case Operation::sort: {
      const Sorted found = sort(row({"", all(3), {}, {{5, 4}, {-1, 2}}}, DType::u8, fewer), "[n]");
      expect_some(found.values, [=](std::int64_t i) -> Wide {
        return i == 0 ? 2 : i == fewer - 1 ? 4 : 3;
      });
      expect_some(found.positions, [=](std::int64_t i) -> Wide {
        return i == 0 ? fewer - 1 : i == fewer - 1 ? 5 : i <= 5 ? i - 1 : i;
      });
      return true;
    }
    case Operation::median:
    case Operation::quantile:
      quantiles_of(fewer);
      return true;
    case Operation::histogram:
      EXPECT_EQ(histogram(places, "[n]", 3, 0, 3).to_vector<std::int64_t>(),
                (std::vector<std::int64_t>{n - 2, 1, 1}));
      return true;
    case Operation::multinomial:
      EXPECT_EQ(multinomial(row({"", all(0), {}, {{-1, 1}}}, DType::f32, fewer), "[n]", 2)
                    .to_vector<std::int64_t>(),
                (std::vector<std::int64_t>{fewer - 1, fewer - 1}));
      return true;
    case Operation::flip:
      expect_some(flip(places, "[n]"), [n](std::int64_t i) -> Wide {
        return i == 1 ? 2 : i == n - 1 - n / 3 ? 1 : 0;
      });
      return true;
    case Operation::roll:
      expect_some(roll(places, "[n]", 1), [n](std::int64_t i) -> Wide {
        return i == n - 1 ? 2 : i == n / 3 + 1 ? 1 : 0;
      });
      return true;
    case Operation::pad:
      expect_some(pad(places, "[n]", 1, 1, 7), [n](std::int64_t i) -> Wide {
        return i == 0 || i == n + 1 ? 7 : i == n - 1 ? 2 : i == n / 3 + 1 ? 1 : 0;
      });
      return true;
    case Operation::from_diagonal:  // n² elements
      return false;
    default:
      ADD_FAILURE() << "no test of " << name(op) << " along a long axis";
      return false;
  }
}

void check_operations(std::int64_t n) {
  int checked = 0;
  for (int i = 0; i < operation_count; ++i) {
    const auto op = static_cast<Operation>(i);
    using Form = grammar::Form;
    const Form& form = info(op).form;
    const bool is_along =
        form.operands == 1 && form.has_arrow == Form::no_arrow &&
        (form.brackets == Form::axes_of_the_input || form.brackets == Form::axis_of_the_input);
    if (!is_along) continue;
    SCOPED_TRACE(name(op));
    ASSERT_NO_THROW(checked += check(op, n));
  }
  EXPECT_EQ(checked, 20);
}

TEST(LongAxis, Short) {
  for (const std::int64_t n : {1031, 70001}) check_operations(n);
}
TEST(LongAxis, SlowOperations) { check_operations((1 << 28) + 21); }

/// Past the range of u32.
TEST(LongAxis, SlowOfBytes) {
  const std::int64_t n = (std::int64_t{1} << 32) + 21;
  for (const Data& data : data_of(DType::u8, n)) check(data, DType::u8, {n, false});
  const Tensor x = row({"", all(3), {}, {{-2, 4}, {-5, 2}}}, DType::u8, n);
  EXPECT_EQ(argmax(x, "[n]").item<std::int64_t>(), n - 2);
  EXPECT_EQ(argmin(x, "[n]").item<std::int64_t>(), n - 5);
}

}  // namespace
}  // namespace ein
