#include "cpu/strip.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpu/level.hpp"
#include "machine/thread_end.hpp"
#include "nest/random.hpp"
#include "size/ask.hpp"
#include "tensor/convert.hpp"
#include "tensor/small_array.hpp"

namespace ein::host {

template <class C>
void apply(ScalarOp op, const C* a, const C* b, const C* c, C* out, std::size_t n) {
  level().strips<C>().apply(op, a, b, c, out, n);
}
template <class C>
void apply_by_rows(ScalarOp op, RowArgument<C> (&args)[3], int arity, C* out, std::size_t rows,
                   std::size_t row, C* spare) {
  level().strips<C>().apply_by_rows(op, args, arity, out, rows, row, spare);
}
template <class C>
void combine_strips(Combine combine, const C* values, std::int64_t step, std::size_t n,
                    std::int64_t count, C* results) {
  level().strips<C>().combine_strips(combine, values, step, n, count, results);
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
  return expr_.is_input() && expr_.steps[0].which == 0 && holds<C>(input_dtypes_[0]);
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
  if (step == 1 && holds<C>(dtype)) {
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

template <class C>
typename StripExpr<C>::Value StripExpr<C>::load(const StripPlace& place, std::size_t input,
                                                const Shape& shape, C* slot, C* into) const {
  const std::byte* from = place.inputs[input];
  const DType dtype = input_dtypes_[input];
  const bool is_column = place.row_length == 1;
  const std::int64_t step = is_column ? place.row_steps[input] : place.steps[input];
  const std::int64_t row_step = shape.rows > 1 ? place.row_steps[input] : 0;
  const std::size_t n = shape.n, row = shape.row;
  if (step == 0) {
    const bool is_one = row_step == 0;
    if (!is_one && row_step == 1 && holds<C>(dtype))
      return {reinterpret_cast<const C*>(from), Extent::rows};
    load_as(from, dtype, static_cast<std::ptrdiff_t>(is_one ? 1 : row_step), slot,
            is_one ? 1 : shape.rows);
    return {slot, is_one ? Extent::one : Extent::rows};
  }
  C* const out = into ? into : slot;
  if (row >= n || row_step == step * static_cast<std::int64_t>(row)) {
    if (step == 1 && holds<C>(dtype)) return {reinterpret_cast<const C*>(from), Extent::all};
    load_as(from, dtype, static_cast<std::ptrdiff_t>(step), out, n);
  } else if (row_step == 0) {
    load_row(from, dtype, step, out, row);
    for (std::size_t filled = row; filled < n; filled *= 2)
      std::copy_n(out, std::min(filled, n - filled), out + filled);
  } else if (row < short_row && holds<C>(dtype)) {
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
typename StripExpr<C>::Value StripExpr<C>::index(const StripPlace& place, std::size_t axis,
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
void StripExpr<C>::draw(const StripPlace& place, const ScalarStep& step, const C* positions,
                        std::size_t n, C* out) const {
  double numbers[strip_size];
  const bool is_normal = step.op == ScalarOp::normal;
  const auto fill = is_normal ? random::fill_normal : random::fill_uniform;
  const std::uint64_t seed = step.of_run ? place.random.seed : step.seed;
  const std::uint64_t stream = step.of_run ? place.random.stream + step.stream : step.stream;
  if (positions) {  // runs of neighbours
    for (std::size_t i = 0, end; i < n; i = end) {
      for (end = i + 1; end < n && positions[end] == positions[end - 1] + C(1);) ++end;
      fill(seed, stream, static_cast<std::uint64_t>(positions[i]), end - i, numbers + i);
    }
  } else if (place.position_step == 1) {
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
const C* StripExpr<C>::evaluate(const StripPlace& place, std::size_t n, C* scratch, C* into) const {
  // Rows of one element are one row in the other direction.
  const bool has_rows = place.row_length > 1;
  const Shape shape{n, has_rows ? n / place.row_length : 1, has_rows ? place.row_length : n};
  SmallArray<Value, 64> values(expr_.steps.size());
  C* const spare = scratch + (slots_ - 3) * strip_size;
  // Of a random step that has them.
  const auto positions_of = [&](const ScalarStep& step) -> const C* {
    if (step.args[0] < 0) return nullptr;
    const Value& positions = values[static_cast<std::size_t>(step.args[0])];
    if (positions.extent == Extent::all) return positions.data;
    spread(positions.data, positions.extent == Extent::rows ? 1 : 0, shape.rows, shape.row, spare);
    return spare;
  };
  for (std::size_t s = 0; s < expr_.steps.size(); ++s) {
    const ScalarStep& step = expr_.steps[s];
    C* const slot = scratch + slot_[s] * static_cast<std::size_t>(strip_size);
    const bool is_last = into && s + 1 == expr_.steps.size();
    Value& value = values[s];
    switch (step.op) {
      case ScalarOp::constant:
        value = {&constants_[s], Extent::one};
        continue;
      case ScalarOp::input:
        value = load(place, static_cast<std::size_t>(step.which), shape, slot,
                     is_last ? into : nullptr);
        continue;
      case ScalarOp::index:
        value = index(place, static_cast<std::size_t>(step.which), shape, slot);
        continue;
      case ScalarOp::uniform:
      case ScalarOp::normal:
        draw(place, step, positions_of(step), n, slot);
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
    C* const out = is_last && most == Extent::all ? into : slot;
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
    if constexpr (std::is_same_v<C, float>) {
      if (step.short_form) {
        level().apply_short_form(step.op, args[0].data, out, shape.count(most));
        continue;
      }
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
  struct alignas(64) Line {
    C elements[64 / sizeof(C)];
  };
  std::vector<Line>& memory = made_once_by_thread([] { return std::vector<Line>(); });
  constexpr std::size_t of_a_line = std::size(Line{}.elements);
  if (memory.size() * of_a_line <= elements) memory.resize(elements / of_a_line + 1);
  return memory.data()->elements;
}

#define EIN_INSTANTIATE(C)                                                                         \
  template class StripExpr<C>;                                                                     \
  template void apply<C>(ScalarOp, const C*, const C*, const C*, C*, std::size_t);                 \
  template void apply_by_rows<C>(ScalarOp, RowArgument<C>(&)[3], int, C*, std::size_t,             \
                                 std::size_t, C*);                                                 \
  template void combine_strips<C>(Combine, const C*, std::int64_t, std::size_t, std::int64_t, C*); \
  template void store_strip<C>(const C*, std::size_t, std::size_t, std::byte*, DType,              \
                               std::int64_t, std::int64_t);                                        \
  template C* strip_scratch<C>(std::size_t);
EIN_STRIP_TYPES(EIN_INSTANTIATE)
#undef EIN_INSTANTIATE

}  // namespace ein::host
