// Loops over strips: operations on elements, and combinations of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "cpu/functions.hpp"
#include "cpu/level/independent.hpp"
#include "cpu/level/kernels.hpp"
#include "cpu/short_forms.hpp"
#include "nest/combine.hpp"
#include "nest/random.hpp"
#include "tensor/convert.hpp"

namespace ein::host::EIN_LEVEL {
namespace {

/// Integers as bits. Those of less than 32 would become int in arithmetic, which may overflow.
template <class C>
using Bits = std::conditional_t<(sizeof(C) < sizeof(int)), unsigned, std::make_unsigned_t<C>>;
template <class C>
constexpr int bits_of = 8 * static_cast<int>(sizeof(C));

/// Integer arithmetic wraps, as two's complement machines do.
template <class C, class F>
C wrapping(C a, C b, F f) {
  if constexpr (std::is_integral_v<C>)
    return static_cast<C>(f(static_cast<Bits<C>>(a), static_cast<Bits<C>>(b)));
  else
    return f(a, b);
}

template <class C>
C integer_power(C base, C exponent) {
  if constexpr (sizeof(C) < 8)
    return static_cast<C>(integer_power(std::int64_t{base}, std::int64_t{exponent}));
  if constexpr (std::is_signed_v<C>) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  }
  std::uint64_t result = 1;
  for (auto factor = static_cast<std::uint64_t>(base); exponent > 0;
       exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return static_cast<C>(result);
}

/// With the sign of the divisor; of 0, 0.
template <class C>
C integer_remainder(C a, C b) {
  if constexpr (std::is_unsigned_v<C>) {
    return b == 0 ? 0 : a % b;
  } else if constexpr (sizeof(C) < 8) {
    // No processor has vector code for %. Rounded to f64 no fraction of 32-bit integers becomes the
    // next whole number.
    const int divisor = b == 0 || b == -1 ? 1 : b;  // of which the remainder is 0
    const auto quotient =
        static_cast<std::int32_t>(static_cast<double>(a) / static_cast<double>(divisor));
    const int r = a - quotient * divisor;
    return static_cast<C>(r != 0 && (r < 0) != (divisor < 0) ? r + divisor : r);
  } else {
    if (b == 0 || b == -1) return 0;
    const C r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
}

/// Rounded down; by 0, 0. The least number by -1 wraps.
template <class C>
C integer_floor_quotient(C a, C b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<C>) {
    if (b == -1) return static_cast<C>(Bits<C>(0) - static_cast<Bits<C>>(a));
    return static_cast<C>(a / b - (a % b != 0 && (a < 0) != (b < 0)));
  } else {
    return static_cast<C>(a / b);
  }
}

/// By less than 0, or by all bits and more: nothing of x is left but its sign.
template <class C>
C shifted_left(C x, C by) {
  return static_cast<Bits<C>>(by) < bits_of<C> ? static_cast<C>(static_cast<Bits<C>>(x) << by)
                                               : C(0);
}
template <class C>
C shifted_right(C x, C by) {
  const bool fits = static_cast<Bits<C>>(by) < bits_of<C>;
  if constexpr (std::is_unsigned_v<C>)
    return fits ? x >> by : C(0);
  else
    return static_cast<C>(x >> (fits ? by : bits_of<C> - 1));
}

template <class C>
C plus(C x, C y) {
  return wrapping(x, y, [](auto u, auto v) { return u + v; });
}
template <class C>
C minus(C x, C y) {
  return wrapping(x, y, [](auto u, auto v) { return u - v; });
}
template <class C>
C times(C x, C y) {
  return wrapping(x, y, [](auto u, auto v) { return u * v; });
}
template <class C>
C power(C x, C y) {
  if constexpr (std::is_integral_v<C>)
    return integer_power(x, y);
  else
    return std::pow(x, y);
}
/// With the sign of the divisor; integers give 0 for a divisor of 0.
template <class C>
C rest(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    return integer_remainder(x, y);
  } else {
    const C r = std::fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
  }
}

/// Of floats by the quotient of what fmod leaves, which is whole but for its rounding; as NumPy's.
template <class C>
C floor_quotient(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    return integer_floor_quotient(x, y);
  } else {
    if (y == 0) return x / y;
    const C r = std::fmod(x, y), quotient = (x - r) / y - (r != 0 && (r < 0) != (y < 0) ? 1 : 0);
    if (quotient == 0) return std::copysign(C(0), x / y);
    const C whole = std::floor(quotient);
    return quotient - whole > C(0.5) ? whole + 1 : whole;
  }
}
/// log(eˣ + eʸ); of equal infinities themselves.
template <class C>
C log_add_exp(C x, C y) {
  const C most = x > y ? x : y, difference = x == y ? C(0) : -std::abs(x - y);
  return most + std::log1p(functions::exp<C>(difference));
}

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // functions as fmod have no vector code
#endif

/// `out` is `a` or apart from it, and never a table that f reads: no element waits for another.
template <class C, class F>
void each(const C* a, C* out, std::size_t n, F f) {
  EIN_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) out[i] = f(a[i]);
}
template <class C, class F>
void each(const C* a, const C* b, C* out, std::size_t n, F f) {
  if (a == out) {
    // The other loop would be right as well, but compilers vectorise it for operands apart only.
    for (std::size_t i = 0; i < n; ++i) out[i] = f(out[i], b[i]);
  } else {
    for (std::size_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  }
}
template <class C, class F>
void each(const C* a, const C* b, const C* c, C* out, std::size_t n, F f) {
  for (std::size_t i = 0; i < n; ++i) out[i] = f(a[i], b[i], c[i]);
}

/// Calls run(f) with the operation as a function of two numbers; false for one that has none.
template <class C, class Run>
bool with_binary(ScalarOp op, Run&& run) {
  switch (op) {
#define EIN_BINARY(name, text, cost, function, result, reference, host, adjoint_a, adjoint_b, \
                   cuda)                                                                      \
  case ScalarOp::name:                                                                        \
    run([](C x, C y) -> C { return host; });                                                  \
    return true;
#define EIN_BINARY_OF_FLOATS(name, text, cost, function, result, reference, host, adjoint_a, \
                             adjoint_b, cuda)                                                \
  case ScalarOp::name:                                                                       \
    if constexpr (std::is_floating_point_v<C>) run([](C x, C y) -> C { return host; });      \
    return std::is_floating_point_v<C>;
#define EIN_BINARY_OF_INTEGERS(name, text, cost, function, result, reference, host, adjoint_a, \
                               adjoint_b, cuda)                                                \
  case ScalarOp::name:                                                                         \
    if constexpr (std::is_integral_v<C>) run([](C x, C y) -> C { return host; });              \
    return std::is_integral_v<C>;
#include <ein/detail/binary_functions.hpp>
    default:
      return false;
  }
}

}  // namespace

template <class C>
void apply(ScalarOp op, const C* a, const C* b, const C* c, C* out, std::size_t n) {
  const C zero(0);
  if (with_binary<C>(op, [&](auto f) { each(a, b, out, n, f); })) return;
  switch (op) {
    case ScalarOp::neg:
      // Not 0 - x, which is 0 where x is.
      if constexpr (std::is_floating_point_v<C>)
        return each(a, out, n, [](C x) { return -x; });
      else
        return each(a, out, n, [](C x) { return minus(C(0), x); });
    case ScalarOp::abs:
      return each(a, out, n, [](C x) {
        if constexpr (std::is_unsigned_v<C>)
          return x;
        else if constexpr (std::is_integral_v<C>)
          return x < 0 ? minus(C(0), x) : x;
        else
          return std::abs(x);
      });
    case ScalarOp::logical_not:
      return each(a, out, n, [=](C x) { return C(x == zero); });
    case ScalarOp::where:
      return each(a, b, c, out, n, [=](C x, C y, C z) { return x != zero ? y : z; });
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<C>) {
    switch (op) {
#define EIN_FUNCTION(name, reference, host, adjoint, cuda) \
  case ScalarOp::name:                                     \
    return each(a, out, n, [](C x) { return host; });
#include <ein/detail/scalar_functions.hpp>
      default:
        break;
    }
  }
  throw std::logic_error("strip: an operation without a kernel");
}

void apply_short_form(ScalarOp op, const float* a, float* out, std::size_t n) {
  with_short_form(op, [&](auto f) { each(a, out, n, f); });
}

namespace {

template <class C, class F>
void each_row(const RowArgument<C>& a, const RowArgument<C>& b, C* out, std::size_t rows,
              std::size_t row, F f) {
  for (std::size_t r = 0; r < rows; ++r, out += row) {
    const C *x = a.data + r * a.step, *y = b.data + r * b.step;
    if (!b.is_whole) {
      const C value = *y;
      for (std::size_t i = 0; i < row; ++i) out[i] = f(x[i], value);
    } else {
      const C value = *x;
      for (std::size_t i = 0; i < row; ++i) out[i] = f(value, y[i]);
    }
  }
}

template <class C>
void where_row(const RowArgument<C>& condition, const RowArgument<C>& a, const RowArgument<C>& b,
               C* out, std::size_t rows, std::size_t row) {
  for (std::size_t r = 0; r < rows; ++r, out += row) {
    const C *c = condition.data + r * condition.step, *x = a.data + r * a.step,
            *y = b.data + r * b.step;
    const C one_x = *x, one_y = *y;
    if (a.is_whole && b.is_whole) {
      for (std::size_t i = 0; i < row; ++i) out[i] = c[i] != C(0) ? x[i] : y[i];
    } else if (a.is_whole) {
      for (std::size_t i = 0; i < row; ++i) out[i] = c[i] != C(0) ? x[i] : one_y;
    } else if (b.is_whole) {
      for (std::size_t i = 0; i < row; ++i) out[i] = c[i] != C(0) ? one_x : y[i];
    } else {
      for (std::size_t i = 0; i < row; ++i) out[i] = c[i] != C(0) ? one_x : one_y;
    }
  }
}

}  // namespace

template <class C>
void apply_by_rows(ScalarOp op, RowArgument<C> (&args)[3], int arity, C* out, std::size_t rows,
                   std::size_t row, C* spare) {
  if (op == ScalarOp::where && args[0].is_whole)
    return where_row(args[0], args[1], args[2], out, rows, row);
  if (arity == 2 &&
      with_binary<C>(op, [&](auto f) { each_row(args[0], args[1], out, rows, row, f); }))
    return;
  for (int i = 0; i < arity; ++i, spare += strip_size) {
    if (args[i].is_whole) continue;
    spread(args[i].data, args[i].step, rows, row, spare);
    args[i].data = spare;
  }
  apply(op, args[0].data, args[1].data, args[2].data, out, rows * row);
}

namespace {

/// The sum of `lanes` numbers, which is a power of two, by halves. The recursion unrolls it.
template <std::size_t lanes, class C>
C sum_lanes(C* lane) {
  if constexpr (lanes == 1) {
    return lane[0];
  } else {
    for (std::size_t l = 0; l < lanes / 2; ++l) lane[l] += lane[l + lanes / 2];
    return sum_lanes<lanes / 2>(lane);
  }
}

/// The sum of a strip in `lanes` side by side, each in runs, wherever the strip lies in
/// memory. Inlined into a loop the lanes do not stay in registers.
template <std::size_t lanes, class C>
[[gnu::noinline]] C sum_in_lanes(const C* values, std::size_t n) {
  constexpr std::size_t run = run_length * lanes;
  const auto add_run = [&](C* lane, std::size_t i) {
    const std::size_t end = std::min(n, i + run);
    for (; i + lanes <= end; i += lanes) {
      for (std::size_t l = 0; l < lanes; ++l) lane[l] += values[i + l];
    }
    for (std::size_t l = 0; i < end; ++i, ++l) lane[l] += values[i];
  };
  C total[lanes] = {};
  add_run(total, 0);
  for (std::size_t i = run; i < n; i += run) {
    C lane[lanes] = {};
    add_run(lane, i);
    for (std::size_t l = 0; l < lanes; ++l) total[l] += lane[l];
  }
  return sum_lanes<lanes>(total);
}

/// A long strip of integers in lanes, which stay in registers where it is not inlined.
template <class C, class Number, class Join>
[[gnu::noinline]] Number join_in_lanes(const C* values, std::size_t n, Number start,
                                       const Join& join) {
  constexpr std::size_t lanes = 256 / sizeof(C);
  Number lane[lanes];
  std::fill_n(lane, lanes, start);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::size_t l = 0; l < lanes; ++l) lane[l] = join(values[i + l], lane[l]);
  }
  for (; i < n; ++i) start = join(values[i], start);
  for (std::size_t l = 0; l < lanes; ++l) start = join(lane[l], start);
  return start;
}

/// Integers may be joined in any order: the compiler has the best one for short strips.
template <class C, class Number, class Join>
Number join_integers(const C* values, std::size_t n, Number start, const Join& join) {
  if (n >= 4096 / sizeof(C)) return join_in_lanes(values, n, start, join);
  for (std::size_t i = 0; i < n; ++i) start = join(values[i], start);
  return start;
}

template <class C>
C sum_strip(const C* values, std::size_t n) {
  if constexpr (std::is_integral_v<C>) {
    using Number = std::make_unsigned_t<C>;  // which wraps
    return static_cast<C>(join_integers(
        values, n, Number(0), [](auto a, Number b) { return static_cast<Number>(a) + b; }));
  } else {
    return n < 64 ? sum_in_lanes<8>(values, n) : sum_in_lanes<32>(values, n);
  }
}

/// The largest of a strip, or the smallest; NaN if there is one.
template <Combine combine, class C>
C extreme_of_strip(const C* values, std::size_t n) {
  const auto pick = [](C a, C b) {
    return a != a || (combine == Combine::max ? a > b : a < b) ? a : b;
  };
  if constexpr (std::is_integral_v<C>) return join_integers(values, n, identity<C>(combine), pick);
  constexpr std::size_t lanes = 32;
  C lane[lanes];
  std::fill_n(lane, lanes, identity<C>(combine));
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::size_t l = 0; l < lanes; ++l) lane[l] = pick(values[i + l], lane[l]);
  }
  for (std::size_t l = 0; i < n; ++i, ++l) lane[l] = pick(values[i], lane[l]);
  for (std::size_t half = lanes / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lane[l] = pick(lane[l + half], lane[l]);
  }
  return lane[0];
}

/// A strip that no other way is for, by halves.
template <class C>
C combine_by_halves(Combine combine, const C* values, std::size_t n) {
  C half[plain_strip_size / 2 + 1];
  if (n == 1) {  // still to be made 0 or 1 by `any` and `all`
    half[0] = identity<C>(combine);
    apply(info(combine).operation, half, values, values, half, 1);
    return half[0];
  }
  for (; n > 1; n = (n + 1) / 2, values = half) {
    const C* upper = values + (n + 1) / 2;
    apply(info(combine).operation, values, upper, upper, half, n / 2);
    if (n % 2 == 1) half[n / 2] = values[n / 2];
  }
  return half[0];
}

}  // namespace

template <class C>
void combine_strips(Combine combine, const C* values, std::int64_t step, std::size_t n,
                    std::int64_t count, C* results) {
  const auto each = [&](const auto& combined) {
    for (std::int64_t r = 0; r < count; ++r) results[r] = combined(values + r * step);
  };
  if (combine == Combine::max)
    each([=](const C* strip) { return extreme_of_strip<Combine::max>(strip, n); });
  else if (combine == Combine::min)
    each([=](const C* strip) { return extreme_of_strip<Combine::min>(strip, n); });
  else if (combine == Combine::sum)
    each([=](const C* strip) { return sum_strip(strip, n); });
  else
    each([=](const C* strip) { return combine_by_halves(combine, strip, n); });
}

#define EIN_INSTANTIATE(C)                                                             \
  template void apply<C>(ScalarOp, const C*, const C*, const C*, C*, std::size_t);     \
  template void apply_by_rows<C>(ScalarOp, RowArgument<C>(&)[3], int, C*, std::size_t, \
                                 std::size_t, C*);                                     \
  template void combine_strips<C>(Combine, const C*, std::int64_t, std::size_t, std::int64_t, C*);
EIN_STRIP_TYPES(EIN_INSTANTIATE)
#undef EIN_INSTANTIATE

}  // namespace ein::host::EIN_LEVEL
