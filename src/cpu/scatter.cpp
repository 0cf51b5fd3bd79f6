// Scatters: sums, products, maxima and minima of values that go where positions say. Each sum takes
// its values in the order of the nest's points, whoever computes it, so results do not depend on
// the threads: these share the result, not the values. Values for one position come in any order,
// so there are no runs of sums to add: sums of many floats are kept with more digits instead.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "cpu/kernel.hpp"
#include "cpu/loops.hpp"
#include "cpu/position.hpp"
#include "machine/cache.hpp"
#include "machine/parallel.hpp"
#include "nest/combine.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"
#include "tensor/convert.hpp"

namespace ein::host {
namespace {

/// What T is combined in.
template <class T>
using SumOf = ElementOf<compute_type(dtype_of<T>)>;

/// A sum of f64 and what its additions rounded off (Knuth, The Art of Computer Programming 2,
/// section 4.2.2, theorem B): its error is that of the last rounding and n² · 2^-106 of the sum of
/// magnitudes.
struct CompensatedSum {
  double sum = 0, rest = 0;

  void add(double value) {
    const double next = sum + value, of_value = next - sum;
    rest += (sum - (next - of_value)) + (value - of_value);
    sum = next;
  }
  /// Infinity and NaN stay as they are; `rest` is NaN beside them.
  double total() const { return std::isfinite(sum) ? sum + rest : sum; }
};
struct WideSum {
  double sum = 0;

  void add(double value) { sum += value; }
  double total() const { return sum; }
};

/// Whether a sum of T rounds.
template <Combine combine, class T>
constexpr bool rounds = combine == Combine::sum&& is_floating(dtype_of<T>);

/// A sum with more digits than SumOf<T>.
template <class T>
using LongSum = std::conditional_t<std::is_same_v<SumOf<T>, double>, CompensatedSum, WideSum>;

/// Sums at positions with more than run_length values, each a row, with more digits than SumOf<T>:
/// a run of values is summed as every reduction does it, and then any number may follow.
template <class T>
struct LongSums {
  using Sum = LongSum<T>;

  std::uint32_t* slots = nullptr;  // of each position: how many values it had, up to run_length;
                                   // behind that its place among these sums
  Sum* sums = nullptr;
  std::int64_t* positions = nullptr;  // of each of these sums
  std::uint32_t count = 0;

  /// Counts a value for `position`, whose sums are those of `from`; where they are long.
  Sum* next(std::int64_t position, const SumOf<T>* from, std::int64_t length) {
    std::uint32_t& slot = slots[position];
    if (slot < run_length) {
      ++slot;
      return nullptr;
    }
    if (slot > run_length) return sums + (slot - run_length - 1) * length;
    slot = run_length + 1 + count;
    positions[count] = position;
    Sum* const row = sums + count++ * length;
    for (std::int64_t i = 0; i < length; ++i) row[i] = {.sum = static_cast<double>(from[i])};
    return row;
  }
};

/// What the operation is called where a position is wrong.
constexpr const char* name_of(Combine combine) {
  constexpr const char* names[] = {"scatter_add", "scatter_prod", "scatter_max", "scatter_min"};
  return names[static_cast<std::size_t>(combine)];
}

/// Adds rows of values to rows of sums, both maybe of one element; those whose position lies in
/// [first, last); the sums begin with those of `first`. Steps are in elements; positions, and the
/// elements of a row of sums, lie side by side.
struct Rows {
  std::int64_t count, length;
  std::int64_t value_step, value_element, sum_stride;
  std::int64_t first, last, size;
  const LoopNest::Indirection* axis;  // for errors
};

/// Sums of another type than SumOf<T> have one value at most, and take it: 0 for -0, which is added
/// to 0. `longer` is null where no position has more than run_length values, or nothing is rounded.
template <Combine combine, class Sum, class T>
void add_rows(const Rows& rows, const std::int64_t* positions, const T* values, Sum* sums,
              LongSums<T>* longer) {
  const auto add = [](Sum& sum, T value) {
    if constexpr (std::is_same_v<Sum, LongSum<T>>) {
      sum.add(static_cast<double>(convert<SumOf<T>>(value)));
    } else if constexpr (std::is_same_v<Sum, SumOf<T>>) {
      sum = combined<combine>(sum, convert<Sum>(value));
    } else if constexpr (rounds<combine, T>) {
      sum = convert<T>(convert<float>(value) + 0.F);
    } else {
      sum = value;
    }
  };
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::int64_t position =
        checked_position(name_of(combine), positions[r], rows.size, *rows.axis);
    if (position < rows.first || position >= rows.last) continue;
    const T* from = values + r * rows.value_step;
    Sum* to = sums + (position - rows.first) * rows.sum_stride;
    if constexpr (rounds<combine, T> && std::is_same_v<Sum, SumOf<T>>) {
      if (longer) {
        if (auto* const row = longer->next(position - rows.first, to, rows.length)) {
          for (std::int64_t i = 0; i < rows.length; ++i)
            row[i].add(static_cast<double>(convert<Sum>(from[i * rows.value_element])));
          continue;
        }
      }
    }
    if (rows.length == 1) {
      add(*to, *from);
    } else if (rows.value_element == 1) {
      for (std::int64_t i = 0; i < rows.length; ++i) add(to[i], from[i]);
    } else {
      for (std::int64_t i = 0; i < rows.length; ++i) add(to[i], from[i * rows.value_element]);
    }
  }
}

template <class T>
class ScatterKernel final : public Kernel {
 public:
  explicit ScatterKernel(const LoopNest& nest) : nest_(nest), size_(nest.output.indirection.size) {
    const LoopNest::Operand& values = nest_.inputs[0];
    const LoopNest::Operand& positions = nest_.inputs[1];
    // A row: what shares a position and lies side by side in the result.
    std::size_t element_axis = no_axis;
    for (std::size_t a = 0; a < nest_.axes.size(); ++a) {
      if (!nest_.axes[a].reduced && ask_equal(positions.strides[a], 0) &&
          ask_equal(nest_.output.strides[a], 1))
        element_axis = a;
    }
    lines_ = Loops(nest_, axes_where(nest_, [&](std::size_t a) {
                     return !nest_.axes[a].reduced && a != element_axis;
                   }));
    std::vector<std::size_t> reduced =
        axes_where(nest_, [&](std::size_t a) { return nest_.axes[a].reduced; });
    const auto steps = [&](std::size_t a) {
      return std::pair(values.strides[a], positions.strides[a]);
    };
    std::sort(reduced.begin(), reduced.end(),
              [&](std::size_t a, std::size_t b) { return steps(a) > steps(b); });
    is_in_place_ = std::is_same_v<T, SumOf<T>> || reduced.empty();
    rows_.length = element_axis == no_axis ? Size(1) : nest_.axes[element_axis].size;
    for (std::size_t a : reduced) points_ *= nest_.axes[a].size;
    rows_.count = 1;
    rows_.size = size_;
    rows_.axis = &nest_.output.indirection;
    rows_.value_element = element_axis == no_axis ? Size(0) : values.strides[element_axis];
    if (!reduced.empty()) {
      const std::size_t row_axis = reduced.back();
      reduced.pop_back();
      rows_.count = nest_.axes[row_axis].size;
      position_step_ = positions.strides[row_axis];
      rows_.value_step = values.strides[row_axis];
    }
    reduced_ = Loops(nest_, reduced);
    if (nest_.combine == Combine::sum && is_floating(dtype_of<T>) && points_ > run_length) {
      // To look up which sums are long takes longer than to add a few elements.
      are_long_ = rows_.length < 4 && points_ >= size_;
      has_long_sums_ = !are_long_;
    }
    is_in_place_ &= !are_long_;
    choose_parts(static_cast<double>(points_));
  }

  std::size_t workspace_bytes(int /*threads*/) const override {
    return static_cast<std::size_t>(parts_) * part_bytes();
  }

  void run(const Run& run) const override {
    visit_combine(*nest_.combine, [&]<Combine combine>(std::integral_constant<Combine, combine>) {
      parallel_for(parts_, [&](std::int64_t part) { run_part<combine>(run, part); });
    });
  }

 private:
  /// Cuts the positions of long rows into ranges, whose sums stay in the cache. Each range reads
  /// all positions, which is little beside a long row. `points` are those that a line adds.
  void choose_parts(double points) {
    const double cached_bytes = static_cast<double>(caches().l2) / 2;
    constexpr std::int64_t most_parts = 16;
    const auto lines = static_cast<double>(lines_.count());
    const double sums = static_cast<double>(size_) * static_cast<double>(rows_.length);
    const double work = sums + points * static_cast<double>(rows_.length);
    const double busy = std::min(static_cast<double>(most_parts) / std::max(1.0, lines),
                                 work / static_cast<double>(elements_per_part));
    const double most_ranges =
        std::min(static_cast<double>(size_), static_cast<double>(rows_.length) / 4);
    const double ranges = std::min(
        std::max(sums * static_cast<double>(bytes_of_sum()) / cached_bytes, busy), most_ranges);
    ranges_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(ranges));
    range_size_ = (size_ + ranges_ - 1) / ranges_;
    units_ = rows_.length == 0 ? 0 : lines_.count() * ranges_;
    const double units_per_part =
        std::max(1.0, static_cast<double>(elements_per_part) * static_cast<double>(ranges_) /
                          std::max(1.0, work));
    parts_ = std::min(
        units_, std::max<std::int64_t>(
                    1, static_cast<std::int64_t>(static_cast<double>(units_) / units_per_part)));
    if (!is_in_place_ || has_long_sums_) parts_ = std::min(parts_, most_parts);
  }

  template <Combine combine>
  void run_part(const Run& run, std::int64_t part) const {
    Loops::Cursor line(lines_, nest_.axes.size()), point(reduced_, nest_.axes.size());
    std::byte* const workspace = run.workspace + static_cast<std::size_t>(part) * part_bytes();
    std::int64_t unit = part_begin(part);
    const std::int64_t end = part_begin(part + 1);
    line.seek(unit / ranges_);
    for (; unit < end; ++unit) {
      Rows rows = rows_;
      rows.first = unit % ranges_ * range_size_;
      rows.last = std::min(size_, rows.first + range_size_);
      T* out = reinterpret_cast<T*>(base(nest_.output, run.buffers) + line.offset(2)) +
               rows.first * nest_.output.indirection.stride;
      if (is_in_place_) {
        rows.sum_stride = nest_.output.indirection.stride;
        sum<combine>(run, rows, line, point, out, workspace);
      } else if (are_long_) {
        if constexpr (rounds<combine, T>) sum_long(run, rows, line, point, out, workspace);
      } else {
        auto* sums = reinterpret_cast<SumOf<T>*>(workspace);
        rows.sum_stride = rows.length;
        sum<combine>(run, rows, line, point, sums, workspace + sum_bytes());
        for (std::int64_t p = 0; p < rows.last - rows.first; ++p) {
          store_from(sums + p * rows.length, static_cast<std::size_t>(rows.length),
                     out + p * nest_.output.indirection.stride, dtype_of<T>, 1);
        }
      }
      if (unit % ranges_ == ranges_ - 1) line.next();
    }
  }

  std::int64_t part_begin(std::int64_t part) const {
    return units_ / parts_ * part + std::min(units_ % parts_, part);
  }
  /// Of each part's workspace: sums that have no place in the result, then long sums.
  std::size_t part_bytes() const {
    if (!has_long_sums_) return sum_bytes();
    return sum_bytes() + slot_bytes() + long_positions_bytes() +
           aligned_bytes(most_long_sums() * length() * sizeof(LongSum<T>));
  }
  std::size_t sum_bytes() const {
    return is_in_place_ ? 0 : aligned_bytes(range_size() * length() * bytes_of_sum());
  }
  std::size_t bytes_of_sum() const { return are_long_ ? sizeof(LongSum<T>) : sizeof(SumOf<T>); }
  std::size_t slot_bytes() const { return aligned_bytes(range_size() * sizeof(std::uint32_t)); }
  std::size_t long_positions_bytes() const {
    return aligned_bytes(most_long_sums() * sizeof(std::int64_t));
  }
  /// Each has more than run_length values.
  std::size_t most_long_sums() const {
    return std::min(range_size(), static_cast<std::size_t>(points_ / (run_length + 1)));
  }
  std::size_t range_size() const { return static_cast<std::size_t>(range_size_); }
  std::size_t length() const { return static_cast<std::size_t>(rows_.length); }

  LongSums<T> long_sums(std::byte* workspace, const Rows& rows) const {
    LongSums<T> longer;
    longer.slots = reinterpret_cast<std::uint32_t*>(workspace);
    longer.positions = reinterpret_cast<std::int64_t*>(workspace + slot_bytes());
    longer.sums = reinterpret_cast<LongSum<T>*>(workspace + slot_bytes() + long_positions_bytes());
    std::fill_n(longer.slots, rows.last - rows.first, 0);
    return longer;
  }

  /// The sums of a line at the positions of a range, from nothing. `point` is at the first one,
  /// before and after.
  template <Combine combine, class Sum>
  void sum(const Run& run, const Rows& rows, const Loops::Cursor& line, Loops::Cursor& point,
           Sum* sums, std::byte* workspace) const {
    Sum nothing{};
    if constexpr (!std::is_same_v<Sum, LongSum<T>>)
      nothing = convert<Sum>(ein::nothing<T>(combine));
    if (rows.sum_stride == rows.length) {
      std::fill_n(sums, (rows.last - rows.first) * rows.length, nothing);
    } else {
      for (std::int64_t p = 0; p < rows.last - rows.first; ++p)
        std::fill_n(sums + p * rows.sum_stride, rows.length, nothing);
    }
    LongSums<T> longer;
    if (has_long_sums_) longer = long_sums(workspace, rows);
    const std::byte* values = base(nest_.inputs[0], run.buffers) + line.offset(0);
    const std::byte* positions = base(nest_.inputs[1], run.buffers) + line.offset(1);
    for (std::int64_t i = 0; i < reduced_.count(); ++i, point.next()) {
      add_all_rows<combine>(rows, positions + point.offset(1),
                            reinterpret_cast<const T*>(values + point.offset(0)), sums,
                            has_long_sums_ ? &longer : nullptr);
    }
    if constexpr (rounds<combine, T> && std::is_same_v<Sum, SumOf<T>>) {
      for (std::uint32_t k = 0; k < longer.count; ++k) {
        for (std::int64_t i = 0; i < rows.length; ++i)
          sums[longer.positions[k] * rows.sum_stride + i] =
              convert<Sum>(longer.sums[k * rows.length + i].total());
      }
    }
  }

  void sum_long(const Run& run, Rows rows, const Loops::Cursor& line, Loops::Cursor& point, T* out,
                std::byte* workspace) const {
    auto* sums = reinterpret_cast<LongSum<T>*>(workspace);
    rows.sum_stride = rows.length;
    sum<Combine::sum>(run, rows, line, point, sums, workspace);
    for (std::int64_t p = 0; p < rows.last - rows.first; ++p) {
      for (std::int64_t i = 0; i < rows.length; ++i)
        out[p * nest_.output.indirection.stride + i] = convert<T>((sums++)->total());
    }
  }

  /// Some rows after the other, whose positions are put side by side as i64 where they are not.
  template <Combine combine, class Sum>
  void add_all_rows(Rows rows, const std::byte* positions, const T* values, Sum* sums,
                    LongSums<T>* longer) const {
    const DType dtype = nest_.inputs[1].dtype;
    if (dtype == DType::i64 && position_step_ == 1) {
      return add_rows<combine>(rows, reinterpret_cast<const std::int64_t*>(positions), values, sums,
                               longer);
    }
    const std::int64_t step = position_step_ * static_cast<std::int64_t>(size_of(dtype));
    std::int64_t side_by_side[256];
    for (std::int64_t left = rows.count; left > 0; left -= rows.count) {
      rows.count = std::min(left, static_cast<std::int64_t>(std::size(side_by_side)));
      load_as(positions, dtype, position_step_, side_by_side, static_cast<std::size_t>(rows.count));
      add_rows<combine>(rows, side_by_side, values, sums, longer);
      positions += rows.count * step;
      values += rows.count * rows.value_step;
    }
  }

  LoopNest nest_;
  std::int64_t size_;  // of the axis that positions are of
  std::int64_t position_step_ = 0;
  Rows rows_{};
  Loops lines_, reduced_;
  bool is_in_place_;            // the sums are kept in the result
  std::int64_t points_ = 1;     // that a line adds
  bool are_long_ = false;       // all sums
  bool has_long_sums_ = false;  // those of many values
  std::int64_t ranges_, range_size_;
  std::int64_t units_, parts_;  // a unit is a range of a line; each part has sums of its own
};

}  // namespace

std::unique_ptr<Kernel> make_scatter_kernel(const LoopNest& nest) {
  if (nest.inputs[0].dtype != nest.output.dtype)
    throw std::logic_error("scatter: values of another dtype");
  std::unique_ptr<Kernel> kernel;
  visit(nest.output.dtype,
        [&]<class T>(std::type_identity<T>) { kernel = std::make_unique<ScatterKernel<T>>(nest); });
  return kernel;
}

}  // namespace ein::host
