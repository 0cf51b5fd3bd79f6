#include "cpu/strip.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "cpu/functions.hpp"
#include "nest/random.hpp"
#include "tensor/convert.hpp"
#include "tensor/small_array.hpp"

namespace ein::host {
namespace {

/// Integer arithmetic wraps, as two's complement machines do.
template <class C, class F>
C wrapping(C a, C b, F f) {
  if constexpr (std::is_integral_v<C>) {
    using Unsigned = std::make_unsigned_t<C>;
    return static_cast<C>(f(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  } else {
    return f(a, b);
  }
}

template <class C>
C integer_power(C base, C exponent) {
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
  } else {
    if (b == 0 || b == -1) return 0;
    const C r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
}

/// By less than 0, or by all bits and more: nothing of x is left but its sign.
template <class C>
C shifted_left(C x, C by) {
  return static_cast<std::uint64_t>(by) < 64 ? static_cast<C>(static_cast<std::uint64_t>(x) << by)
                                             : C(0);
}
template <class C>
C shifted_right(C x, C by) {
  const bool fits = static_cast<std::uint64_t>(by) < 64;
  if constexpr (std::is_unsigned_v<C>)
    return fits ? x >> by : C(0);
  else
    return x >> (fits ? by : 63);
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

/// `out` is `a` or apart from it, and never a table that f reads: no element waits for another.
template <class C, class F>
void each(const C* a, C* out, std::size_t n, F f) {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#elif defined(__GNUC__)
#pragma GCC ivdep
#endif
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
#include <ein/binary_functions.hpp>
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
#include <ein/scalar_functions.hpp>
      default:
        break;
    }
  }
  throw std::logic_error("strip: an operation without a kernel");
}

template <class C>
StripExpr<C>::StripExpr(const ScalarExpr& expr, std::span<const LoopNest::Operand> inputs)
    : expr_(expr) {
  for (const LoopNest::Operand& input : inputs) input_dtypes_.push_back(input.dtype);
  const std::size_t count = expr_.steps.size();
  std::vector<std::size_t> last_use(count, count);
  for (std::size_t s = 0; s < count; ++s) {
    const ScalarStep& step = expr_.steps[s];
    constants_.push_back(std::is_integral_v<C> ? static_cast<C>(step.integer)
                                               : static_cast<C>(step.real));
    for (int arg : step.args) {
      if (arg >= 0) last_use[static_cast<std::size_t>(arg)] = s;
    }
  }
  // A strip of scratch memory is used again when its value has been read for the last time, so that
  // few are: all of them should stay in the first-level cache.
  std::vector<std::uint16_t> free;
  for (std::size_t s = 0; s < count; ++s) {
    if (free.empty()) free.push_back(static_cast<std::uint16_t>(slots_++));
    slot_.push_back(free.back());
    free.pop_back();
    std::vector<int> done;
    for (int arg : expr_.steps[s].args) {
      if (arg < 0 || last_use[static_cast<std::size_t>(arg)] != s ||
          std::find(done.begin(), done.end(), arg) != done.end())
        continue;
      done.push_back(arg);
      free.push_back(slot_[static_cast<std::size_t>(arg)]);
    }
  }
  slots_ += 3;  // arguments spread over the strip
}

template <class C>
bool StripExpr<C>::is_plain_input() const {
  return expr_.is_input() && expr_.steps[0].which == 0 && input_dtypes_[0] == dtype_of<C>;
}

namespace {

/// Rows of `row` elements, row_step apart, side by side.
template <class C, std::size_t row>
void gather_rows(const C* from, std::int64_t row_step, C* out, std::size_t rows) {
  for (std::size_t r = 0; r < rows; ++r, from += row_step, out += row)
    std::memcpy(out, from, row * sizeof(C));
}
/// The same for rows too short for a call of memcpy; a length that the compiler knows makes it a
/// few moves.
template <class C, std::size_t... lengths>
void gather_short_rows(const C* from, std::size_t row, std::int64_t row_step, C* out,
                       std::size_t rows, std::index_sequence<lengths...>) {
  static_cast<void>(
      ((row == lengths ? (gather_rows<C, lengths>(from, row_step, out, rows), true) : false) ||
       ...));
}
constexpr std::size_t short_row = 16;

template <class C>
void load_row(const std::byte* from, DType dtype, std::int64_t step, C* out, std::size_t n) {
  if (step == 1 && dtype == dtype_of<C>) {
    std::memcpy(out, from, n * sizeof(C));
    return;
  }
  load_as(from, dtype, static_cast<std::ptrdiff_t>(step), out, n);
}

}  // namespace

/// Of the strip at hand: elements, rows, and elements in a row.
template <class C>
struct StripExpr<C>::Shape {
  std::size_t n, rows, row;

  std::size_t count(Extent extent) const {
    return extent == Extent::all ? n : extent == Extent::rows ? rows : 1;
  }
};

namespace {

/// Each value of `from` as a row of `row` elements.
template <class C>
void spread(const C* from, std::size_t step, std::size_t rows, std::size_t row, C* out) {
  for (std::size_t r = 0; r < rows; ++r) std::fill_n(out + r * row, row, from[r * step]);
}

/// An argument of an operation over rows: a value for each element, or one that holds for a row.
template <class C>
struct RowArgument {
  const C* data;
  bool is_whole;
  std::size_t step;  // from row to row
};

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

/// An operation some of whose arguments have one value for each row; at least one has all.
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

}  // namespace

template <class C>
typename StripExpr<C>::Value StripExpr<C>::load(const Place& place, std::size_t input,
                                                const Shape& shape, C* out) const {
  const std::byte* from = place.inputs[input];
  const DType dtype = input_dtypes_[input];
  const bool is_column = place.row_length == 1;
  const std::int64_t step = is_column ? place.row_steps[input] : place.steps[input];
  const std::int64_t row_step = shape.rows > 1 ? place.row_steps[input] : 0;
  const std::size_t n = shape.n, row = shape.row;
  if (step == 0) {
    const bool is_one = row_step == 0;
    if (!is_one && row_step == 1 && dtype == dtype_of<C>)
      return {reinterpret_cast<const C*>(from), Extent::rows};
    load_as(from, dtype, static_cast<std::ptrdiff_t>(is_one ? 1 : row_step), out,
            is_one ? 1 : shape.rows);
    return {out, is_one ? Extent::one : Extent::rows};
  }
  if (row >= n || row_step == step * static_cast<std::int64_t>(row)) {
    if (step == 1 && dtype == dtype_of<C>) return {reinterpret_cast<const C*>(from), Extent::all};
    load_as(from, dtype, static_cast<std::ptrdiff_t>(step), out, n);
  } else if (row_step == 0) {
    load_row(from, dtype, step, out, row);
    for (std::size_t filled = row; filled < n; filled *= 2)
      std::copy_n(out, std::min(filled, n - filled), out + filled);
  } else if (row < short_row && dtype == dtype_of<C>) {
    const auto* elements = reinterpret_cast<const C*>(from);
    if (step == 1) {
      gather_short_rows(elements, row, row_step, out, n / row,
                        std::make_index_sequence<short_row>());
      return {out, Extent::all};
    }
    // Column by column, so that the inner loop is a long one.
    const auto rows = static_cast<std::int64_t>(n / row), columns = static_cast<std::int64_t>(row);
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t r = 0; r < rows; ++r)
        out[r * columns + c] = elements[r * row_step + c * step];
    }
  } else {
    const std::int64_t row_bytes = row_step * static_cast<std::int64_t>(size_of(dtype));
    for (std::size_t first = 0; first < n; first += row, from += row_bytes)
      load_row(from, dtype, step, out + first, row);
  }
  return {out, Extent::all};
}

template <class C>
typename StripExpr<C>::Value StripExpr<C>::index(const Place& place, std::size_t axis,
                                                 const Shape& shape, C* out) const {
  const std::int64_t first = place.index[axis];
  const auto count_up = [&](C* to, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      to[i] = static_cast<C>(first + static_cast<std::int64_t>(i));
  };
  const bool by_row = place.row_length > 0 && axis == place.row_axis;
  if (axis == place.strip_axis && place.row_length != 1) {
    for (std::size_t r = 0; r < shape.rows; ++r) count_up(out + r * shape.row, shape.row);
    return {out, Extent::all};
  }
  count_up(out, by_row ? (place.row_length == 1 ? shape.n : shape.rows) : 1);
  return {out, !by_row ? Extent::one : place.row_length == 1 ? Extent::all : Extent::rows};
}

template <class C>
void StripExpr<C>::draw(const Place& place, const ScalarStep& step, std::size_t n, C* out) const {
  double numbers[strip_size];
  const bool is_normal = step.op == ScalarOp::normal;
  const auto fill = is_normal ? random::fill_normal : random::fill_uniform;
  const std::uint64_t seed = step.of_run ? place.random.seed : step.seed;
  const std::uint64_t stream = step.of_run ? place.random.stream + step.stream : step.stream;
  if (place.position_step == 1) {
    fill(seed, stream, static_cast<std::uint64_t>(place.position), n, numbers);
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t at = place.position + place.position_step * static_cast<std::int64_t>(i);
      fill(seed, stream, static_cast<std::uint64_t>(at), 1, numbers + i);
    }
  }
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<C>(numbers[i]);
}

template <class C>
const C* StripExpr<C>::evaluate(const Place& place, std::size_t n, C* scratch, C* into) const {
  // Rows of one element are one row in the other direction.
  const bool has_rows = place.row_length > 1;
  const Shape shape{n, has_rows ? n / place.row_length : 1, has_rows ? place.row_length : n};
  SmallArray<Value, 64> values(expr_.steps.size());
  C* const spare = scratch + (slots_ - 3) * strip_size;
  for (std::size_t s = 0; s < expr_.steps.size(); ++s) {
    const ScalarStep& step = expr_.steps[s];
    C* const slot = scratch + slot_[s] * static_cast<std::size_t>(strip_size);
    Value& value = values[s];
    switch (step.op) {
      case ScalarOp::constant:
        value = {&constants_[s], Extent::one};
        continue;
      case ScalarOp::input:
        value = load(place, static_cast<std::size_t>(step.which), shape, slot);
        continue;
      case ScalarOp::index:
        value = index(place, static_cast<std::size_t>(step.which), shape, slot);
        continue;
      case ScalarOp::uniform:
      case ScalarOp::normal:
        draw(place, step, n, slot);
        value = {slot, Extent::all};
        continue;
      default:
        break;
    }
    const int arity = info(step.op).arity;
    Extent most = Extent::one, least = Extent::all;
    for (int i = 0; i < arity; ++i) {
      const Extent extent = values[static_cast<std::size_t>(step.args[i])].extent;
      most = std::max(most, extent);
      least = std::min(least, extent);
    }
    C* const out = s + 1 == expr_.steps.size() && into && most == Extent::all ? into : slot;
    value = {out, most};
    RowArgument<C> args[3] = {};
    // Where no argument has all, those that have one for each row do.
    const bool of_rows = most == Extent::rows;
    const std::size_t rows = of_rows ? 1 : shape.rows, row = of_rows ? shape.rows : shape.row;
    for (int i = 0; i < arity; ++i) {
      const Value& arg = values[static_cast<std::size_t>(step.args[i])];
      const bool is_whole = arg.extent == most;
      args[i] = {arg.data, is_whole, is_whole ? row : arg.extent == Extent::rows ? 1U : 0U};
    }
    if (most == least) {
      apply(step.op, args[0].data, args[1].data, args[2].data, out, shape.count(most));
    } else {
      apply_by_rows(step.op, args, arity, out, rows, row, spare);
    }
  }
  const Value& last = values[expr_.steps.size() - 1];
  if (last.extent == Extent::all) return last.data;
  C* const out = into ? into : spare;
  spread(last.data, last.extent == Extent::rows ? 1 : 0, shape.rows, shape.row, out);
  return out;
}

template <class C>
void store_strip(const C* values, std::size_t n, std::size_t row_length, std::byte* out, DType to,
                 std::int64_t step, std::int64_t row_step) {
  if (row_length == 0 || row_length >= n ||
      row_step == step * static_cast<std::int64_t>(row_length)) {
    return store_from(values, n, out, to, static_cast<std::ptrdiff_t>(step));
  }
  const std::int64_t row_bytes = row_step * static_cast<std::int64_t>(size_of(to));
  for (std::size_t first = 0; first < n; first += row_length, out += row_bytes) {
    store_from(values + first, row_length, out, to, static_cast<std::ptrdiff_t>(step));
  }
}

template <class C>
C* strip_scratch(std::size_t elements) {
  thread_local Eigen::Array<C, Eigen::Dynamic, 1> memory;
  if (memory.size() < static_cast<Eigen::Index>(elements))
    memory.resize(static_cast<Eigen::Index>(elements));
  return memory.data();
}

#define EIN_INSTANTIATE(C)                                                            \
  template class StripExpr<C>;                                                        \
  template void apply<C>(ScalarOp, const C*, const C*, const C*, C*, std::size_t);    \
  template void store_strip<C>(const C*, std::size_t, std::size_t, std::byte*, DType, \
                               std::int64_t, std::int64_t);                           \
  template C* strip_scratch<C>(std::size_t);
EIN_INSTANTIATE(float)
EIN_INSTANTIATE(double)
EIN_INSTANTIATE(std::int64_t)
EIN_INSTANTIATE(std::uint64_t)
#undef EIN_INSTANTIATE

}  // namespace ein::host
