#include "cost/inside.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "graph/build.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

/// 0 <= offset + Σ coefficient · index < length
struct IndexBound {
  std::vector<DimIndex::Term> terms;
  Size offset = 0, length = 0;
};

/// The tuples of some axes within bounds, by going through all axes but the longest.
class Counter {
 public:
  Counter(const std::vector<Axis>& axes, std::vector<int> together, std::vector<IndexBound> bounds)
      : axes_(axes), together_(std::move(together)), bounds_(std::move(bounds)) {
    const auto longest = std::max_element(together_.begin(), together_.end(),
                                          [&](int a, int b) { return size(a) < size(b); });
    longest_ = *longest;
    together_.erase(longest);
  }
  Size count() {
    const bool are_numbers = std::all_of(together_.begin(), together_.end(),
                                         [&](int axis) { return size(axis).is_number(); });
    if (are_numbers) return bounds_.size() == 1 ? by_positions() : count(0);
    Size all = size(longest_);
    for (const int axis : together_) all *= size(axis);
    return all;
  }

 private:
  Size size(int axis) const { return axes_[static_cast<std::size_t>(axis)].size; }
  /// With one bound: as many as positions have tuples of all axes but the longest.
  Size by_positions() {
    std::map<std::int64_t, std::int64_t> tuples{{0, 1}};
    for (const int axis : together_) {
      std::int64_t by = 0;
      for (const DimIndex::Term& term : bounds_[0].terms) {
        if (term.axis == axis) by += std::int64_t{term.coefficient};
      }
      std::map<std::int64_t, std::int64_t> more;
      for (const auto& [position, count] : tuples) {
        for (std::int64_t i = 0; i < std::int64_t{size(axis)}; ++i)
          more[position + i * by] += count;
      }
      tuples = std::move(more);
    }
    const Size offset = bounds_[0].offset;
    Size sum = 0;
    for (const auto& [position, count] : tuples) {
      bounds_[0].offset = offset + position;
      sum += along_longest() * count;
    }
    return sum;
  }
  Size count(std::size_t place) {
    if (place == together_.size()) return along_longest();
    Size sum = 0;
    const int axis = together_[place];
    const std::int64_t indices = size(axis);
    move(axis, 0, indices, [&] { sum += count(place + 1); });
    return sum;
  }
  /// Calls f with each index of an axis added to the bounds' offsets.
  template <class F>
  void move(int axis, std::int64_t first, std::int64_t end, F&& f) {
    const auto step = [&](std::int64_t by) {
      for (IndexBound& bound : bounds_) {
        for (const DimIndex::Term& term : bound.terms) {
          if (term.axis == axis) bound.offset += term.coefficient * by;
        }
      }
    };
    for (std::int64_t i = first; i < end; ++i, step(1)) f();
    step(first - end);
  }
  Size along_longest() const {
    Size first = 0, end = size(longest_);
    for (const IndexBound& bound : bounds_) {
      Size by = 0;
      for (const DimIndex::Term& term : bound.terms) {
        if (term.axis == longest_) by += term.coefficient;
      }
      const Size last = bound.length - 1;
      if (ask_equal(by, 0)) {
        if (bound.offset < 0 || bound.offset > last) return 0;
        continue;
      }
      const bool is_back = by < 0;
      const Size step = is_back ? -by : by, low = is_back ? bound.offset - last : -bound.offset,
                 high = is_back ? bound.offset : last - bound.offset;
      if (high < 0) return 0;
      const Size least = low > 0 ? (low + step - 1) / step : Size(0), most = high / step + 1;
      if (least > first) first = least;
      if (most < end) end = most;
    }
    return end > first ? end - first : Size(0);
  }

  const std::vector<Axis>& axes_;
  std::vector<int> together_;
  std::vector<IndexBound> bounds_;
  int longest_ = 0;
};

}  // namespace

std::vector<AxesTogether> axes_together(const Graph& graph, const Op& op) {
  std::vector<int> group(op.axes.size());
  std::iota(group.begin(), group.end(), 0);
  std::vector<IndexBound> bounds;
  const auto take = [&](const Access& access, const Shape& shape) {
    for (std::size_t d = 0; d < access.size(); ++d) {
      if (stays_inside({access[d]}, {shape[d]}, op.axes)) continue;
      bounds.push_back({access[d].terms, access[d].offset, shape[d]});
      for (const DimIndex::Term& term : access[d].terms) {
        const int from = group[static_cast<std::size_t>(term.axis)],
                  to = group[static_cast<std::size_t>(access[d].terms[0].axis)];
        std::replace(group.begin(), group.end(), from, to);
      }
    }
  };
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    take(op.reads[i], graph.op(op.inputs[i]).shape);
  take(op.write, op.shape);

  std::vector<AxesTogether> all;
  for (int g = 0; g < static_cast<int>(group.size()); ++g) {
    AxesTogether together;
    for (std::size_t a = 0; a < group.size(); ++a) {
      if (group[a] == g) together.axes.push_back(static_cast<int>(a));
    }
    if (together.axes.empty()) continue;
    std::vector<IndexBound> of_these;
    for (const IndexBound& bound : bounds) {
      const bool is_of =
          !bound.terms.empty() && group[static_cast<std::size_t>(bound.terms[0].axis)] == g;
      if (is_of) of_these.push_back(bound);
    }
    together.is_cut = !of_these.empty();
    if (together.is_cut) together.inside = Counter(op.axes, together.axes, of_these).count();
    all.push_back(std::move(together));
  }
  // A constant position outside: nothing is inside.
  for (const IndexBound& bound : bounds) {
    if (bound.terms.empty()) all.push_back({{}, true, 0});
  }
  return all;
}

Size positions_inside(const DimIndex& dim, Size length, const std::vector<Axis>& axes) {
  constexpr std::int64_t most_counted = 1 << 20;
  const auto positions = positions_of(dim, axes, most_counted);
  if (positions && length.is_number()) {
    return std::count_if(positions->begin(), positions->end(), [&](std::int64_t position) {
      return position >= 0 && position < length.word();
    });
  }
  Size points = 1;
  for (const DimIndex::Term& term : dim.terms)
    points *= axes[static_cast<std::size_t>(term.axis)].size;
  return points < length ? points : length;
}

}  // namespace ein
