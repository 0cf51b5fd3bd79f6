#include "schedule/gpu_group_rows.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "nest/dependences.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

/// How far ahead nests are looked for, and how many are taken.
constexpr std::size_t most_skipped = 24, most_together = 24, farthest_seed = 8;

using Operand = LoopNest::Operand;

/// The input that moves along every axis and has its neighbours closest; none if no input does. A
/// reduction without one would read the same elements again for each row, as a matrix product does.
const Operand* guide(const LoopNest& nest) {
  const auto is_full = [&](const Operand& operand) {
    return !operand.is_indirect() && std::all_of(operand.strides.begin(), operand.strides.end(),
                                                 [](Size s) { return s > 0; });
  };
  const auto found = std::find_if(nest.inputs.begin(), nest.inputs.end(), is_full);
  return found == nest.inputs.end() ? nullptr : &*found;
}

/// Whether `whole`, for all lengths, is a multiple of `part`, and more than that once.
bool divides(Size part, Size whole) {
  return !always_equal(part, whole) && always_equal(whole % part, 0);
}

/// Whether a nest could be in any group. What updates parameters goes with its like (group_many).
bool is_joinable(const LoopNest& nest) {
  if (nest.phase == Phase::update || nest.is_scatter() || nest.along != LoopNest::Along::nothing)
    return false;
  if (std::any_of(nest.axes.begin(), nest.axes.end(),
                  [](const auto& axis) { return axis.size < 2; }))
    return false;
  return !nest.reduces() || guide(nest) != nullptr;
}

/// Whether rows as long and as many as those of a reduction suit a group.
bool is_seed(const LoopNest& nest, const GpuTarget& target) {
  if (!is_joinable(nest) || !nest.reduces()) return false;
  Size rows = 1, elements = 1, row_step = INT64_MAX, step = INT64_MAX;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    const bool reduced = nest.axes[a].reduced;
    (reduced ? elements : rows) *= nest.axes[a].size;
    (reduced ? step : row_step) = std::min(reduced ? step : row_step, guide(nest)->strides[a]);
  }
  if (row_step < step && rows < target.many_columns && elements > target.short_column) return false;
  return rows < target.few_rows    ? elements <= target.row_of_few
         : rows < target.some_rows ? elements <= target.row_of_some
                                   : true;
}

/// A group as it grows. Its axes are those of its rows, and then those within a row; each of its
/// nests has them all.
class RowGroup {
 public:
  RowGroup(const LoopNest& seed, const Dependences& dependences) : dependences_(dependences) {
    const Operand& by = *guide(seed);
    std::vector<std::size_t> order(seed.axes.size());
    for (std::size_t a = 0; a < order.size(); ++a) order[a] = a;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (seed.axes[a].reduced != seed.axes[b].reduced) return seed.axes[b].reduced;
      return !ask_equal(by.strides[a], by.strides[b]) ? by.strides[a] > by.strides[b] : a < b;
    });
    const LoopNest laid = in_order(seed, order);
    axes_ = laid.axes;
    rows_ = static_cast<std::size_t>(
        std::count_if(axes_.begin(), axes_.end(), [](const auto& axis) { return !axis.reduced; }));
    known_ = laid.inputs;
    known_.push_back(laid.output);
  }

  std::size_t size() const { return nests_.size(); }
  std::size_t row_axes() const { return rows_; }
  bool has_reduction() const {
    return std::any_of(nests_.begin(), nests_.end(), std::mem_fn(&LoopNest::reduces));
  }
  bool writes(int buffer) const { return written_.contains(memory_of(buffer)); }

  bool take_in(const LoopNest& nest) {
    // What is computed again, so that it need not be kept, must not come forward.
    const auto has = [&](Phase phase) {
      return std::any_of(nests_.begin(), nests_.end(),
                         [&](const LoopNest& member) { return member.phase == phase; });
    };
    if (nest.phase == Phase::recompute && has(Phase::forward)) return false;
    RowGroup trial = *this;
    auto placed = is_joinable(nest) ? trial.placed(nest) : std::nullopt;
    if (!placed || !trial.add(std::move(*placed))) return false;
    *this = std::move(trial);
    return true;
  }
  /// Sees how a nest walks its operands, so that others can be told by them. Whether that is new.
  bool learn(const LoopNest& nest) {
    RowGroup trial = *this;
    const auto placed = is_joinable(nest) ? trial.placed(nest) : std::nullopt;
    if (!placed || trial.axes_.size() != axes_.size()) return false;
    const std::size_t before = known_.size();
    remember(*placed);
    return known_.size() > before;
  }

  /// The nests, of which those with one value per row have no other axes.
  std::vector<LoopNest> take() {
    for (LoopNest& nest : nests_) {
      if (nest.reduces() || is_many(nest)) continue;
      nest.axes.resize(rows_);
      for (Operand& input : nest.inputs) input.strides.resize(rows_);
      nest.output.strides.resize(rows_);
    }
    return std::move(nests_);
  }

 private:
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  int memory_of(int buffer) const { return dependences_.memory_of(buffer); }
  bool is_many(const LoopNest& nest) const {
    return std::any_of(nest.output.strides.begin() + static_cast<std::ptrdiff_t>(rows_),
                       nest.output.strides.end(), [](Size s) { return !always_equal(s, 0); });
  }

  bool split_axis(std::size_t axis, Size inner) {
    for (LoopNest& nest : nests_) {
      if (asks_index(nest, axis)) return false;
      split(nest, axis, inner);
    }
    for (Operand& operand : known_) split(operand, axis, inner);
    LoopNest::NestAxis part = axes_[axis];
    part.size = inner;
    axes_[axis].size /= inner;
    axes_.insert(axes_.begin() + static_cast<std::ptrdiff_t>(axis) + 1, std::move(part));
    if (axis < rows_) ++rows_;
    return true;
  }

  /// A nest whose axes become the group's. `place[a]` is the group's axis that the nest's axis a
  /// is.
  struct Newcomer {
    LoopNest nest;
    std::vector<std::size_t> place;
    bool has(std::size_t group_axis) const {
      return std::find(place.begin(), place.end(), group_axis) != place.end();
    }
  };

  /// Tells from operand number `o`, which moves as known operand `k` does, what the axes are that
  /// it moves along. Axes are split where one side has them in one piece.
  bool match(Newcomer& n, std::size_t o, std::size_t k) {
    for (;;) {
      std::size_t axis = nowhere;
      for (std::size_t a = 0; a < n.place.size(); ++a) {
        if (n.place[a] != nowhere || always_equal(n.nest.operand(o).strides[a], 0)) continue;
        if (axis == nowhere || n.nest.operand(o).strides[a] < n.nest.operand(o).strides[axis])
          axis = a;
      }
      if (axis == nowhere) return true;
      const Size stride = n.nest.operand(o).strides[axis], size = n.nest.axes[axis].size;
      if (stride < 0) return false;
      std::size_t same = nowhere, coarser = nowhere;
      for (std::size_t g = 0; g < axes_.size(); ++g) {
        const Size s = known_[k].strides[g];
        if (n.has(g) || s <= 0) continue;
        if (always_equal(s, stride)) same = g;
        if (divides(s, stride) && divides(stride / s, axes_[g].size)) coarser = g;
      }
      if (same == nowhere) {
        if (coarser == nowhere ||
            !split_group_axis(n, coarser, stride / known_[k].strides[coarser]))
          return false;
        continue;
      }
      const Size of_group = axes_[same].size;
      if (always_equal(size, of_group)) {
        n.place[axis] = same;
      } else if (divides(of_group, size)) {
        if (asks_index(n.nest, axis)) return false;
        split(n.nest, axis, of_group);
        n.place.insert(n.place.begin() + static_cast<std::ptrdiff_t>(axis) + 1, same);
      } else if (divides(size, of_group)) {
        if (!split_group_axis(n, same, size)) return false;
        n.place[axis] = same + 1;
      } else {
        return false;
      }
    }
  }

  bool split_group_axis(Newcomer& n, std::size_t axis, Size inner) {
    for (std::size_t& p : n.place) {
      if (p != nowhere && p > axis) ++p;
    }
    return split_axis(axis, inner);
  }

  /// The nest with the group's axes, if it walks along them.
  std::optional<LoopNest> placed(const LoopNest& nest) {
    Newcomer n{nest, std::vector<std::size_t>(nest.axes.size(), nowhere)};
    // The operands that move along the most axes first.
    std::vector<std::size_t> order(nest.inputs.size() + 1);
    for (std::size_t o = 0; o < order.size(); ++o) order[o] = o;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto still = [&](std::size_t o) {
        return std::count_if(n.nest.operand(o).strides.begin(), n.nest.operand(o).strides.end(),
                             [](Size stride) { return always_equal(stride, 0); });
      };
      return still(a) != still(b) ? still(a) < still(b) : a < b;
    });
    for (std::size_t o : order) {
      for (std::size_t k = 0; k < known_.size(); ++k) {
        if (known_[k].buffer != n.nest.operand(o).buffer) continue;
        RowGroup trial = *this;
        Newcomer found = n;
        if (!trial.match(found, o, k)) continue;
        *this = std::move(trial);
        n = std::move(found);
        break;
      }
    }
    if (!settle(n)) return std::nullopt;
    return std::move(n.nest);
  }

  /// Gives the nest the group's axes.
  bool settle(Newcomer& n) {
    const bool reduces_row = n.nest.reduces();
    std::size_t within = 0;
    for (std::size_t a = 0; a < n.place.size(); ++a) {
      if (n.place[a] == nowhere) return false;
      const bool is_within = n.place[a] >= rows_;
      if (reduces_row && n.nest.axes[a].reduced != is_within) return false;
      within += is_within;
    }
    const bool has_all_rows = n.place.size() - within == rows_,
               has_rest = within == axes_.size() - rows_;
    if (!has_all_rows || (within > 0 && !has_rest)) return false;
    const auto moved = [&](Operand& operand) {
      std::vector<Size> strides(axes_.size(), 0);
      for (std::size_t a = 0; a < n.place.size(); ++a) strides[n.place[a]] = operand.strides[a];
      operand.strides = std::move(strides);
    };
    for (Operand& input : n.nest.inputs) moved(input);
    moved(n.nest.output);
    rename_indices(n.nest, [&](std::size_t which) { return n.place[which]; });
    n.nest.axes = axes_;
    for (std::size_t a = rows_; a < axes_.size(); ++a) n.nest.axes[a].reduced = reduces_row;
    return true;
  }

  /// Takes in a nest with the group's axes, if it needs only the same row's values of what the
  /// group writes.
  bool add(LoopNest nest) {
    std::set<int> reads = read_;
    for (const Operand& input : nest.inputs) {
      const auto writer = written_.find(memory_of(input.buffer));
      if (writer == written_.end()) {
        reads.insert(memory_of(input.buffer));
        continue;
      }
      const Operand& written = nests_[writer->second].output;
      if (input.is_indirect() || input.buffer != written.buffer || input.dtype != written.dtype ||
          !always_equal(input.offset, written.offset) ||
          !always_equal(input.strides, written.strides)) {
        return false;
      }
    }
    for (const Operand& input : nest.inputs) {
      if (input.is_indirect() &&
          writes(nest.inputs[static_cast<std::size_t>(input.indirection.positions)].buffer))
        return false;
    }
    const int output = memory_of(nest.output.buffer);
    if (reads.contains(output) || written_.contains(output)) return false;
    read_ = std::move(reads);
    written_.emplace(output, nests_.size());
    remember(nest);
    nests_.push_back(std::move(nest));
    return true;
  }

  void remember(const LoopNest& nest) {
    const auto keep = [&](const Operand& operand) {
      const bool is_known = std::any_of(known_.begin(), known_.end(), [&](const Operand& k) {
        return k.buffer == operand.buffer && always_equal(k.strides, operand.strides);
      });
      if (!is_known) known_.push_back(operand);
    };
    for (const Operand& input : nest.inputs) keep(input);
    keep(nest.output);
  }

  Dependences dependences_;
  std::vector<LoopNest::NestAxis> axes_;
  std::size_t rows_ = 0;
  std::vector<LoopNest> nests_;
  std::vector<Operand> known_;          // how buffers are walked
  std::set<int> read_;                  // memory that the group does not write
  std::map<int, std::size_t> written_;  // memory, and by which nest
};

/// Nests of the program that stay together.
struct Item {
  Program::Group group;  // its `first` means nothing
  std::vector<LoopNest> nests;
};

class RowGrouping {
 public:
  RowGrouping(Program& program, const GpuTarget& target, std::span<const int> kept,
              std::span<const int> memory)
      : program_(program),
        target_(target),
        kept_(kept),
        dependences_(memory),
        uses_(program.buffers.size(), 0) {
    std::size_t n = 0;
    for (const Program::Group& group : program.groups) {
      for (; n < group.first; ++n) items_.push_back({{}, {program.nests[n]}});
      const auto begin = program.nests.begin() + static_cast<std::ptrdiff_t>(n);
      items_.push_back({group, {begin, begin + static_cast<std::ptrdiff_t>(group.count)}});
      n += group.count;
    }
    for (; n < program.nests.size(); ++n) items_.push_back({{}, {program.nests[n]}});
    for (const LoopNest& nest : program.nests) count(nest, uses_);
  }

  void run() {
    std::vector<Item> done;
    while (!items_.empty()) {
      if (auto group = group_from_first()) {
        done.push_back(std::move(*group));
      } else {
        done.push_back(std::move(items_.front()));
        items_.erase(items_.begin());
      }
    }
    program_.nests.clear();
    program_.groups.clear();
    for (Item& item : done) {
      item.group.first = program_.nests.size();
      item.group.count = item.nests.size();
      program_.groups.push_back(std::move(item.group));
      std::move(item.nests.begin(), item.nests.end(), std::back_inserter(program_.nests));
    }
  }

 private:
  static void count(const LoopNest& nest, std::vector<int>& uses) {
    for (const Operand& input : nest.inputs) ++uses[static_cast<std::size_t>(input.buffer)];
    ++uses[static_cast<std::size_t>(nest.output.buffer)];
  }
  /// The row group that begins with the first item, taken out of the list.
  std::optional<Item> group_from_first() {
    std::size_t s = 0;
    while (s < std::min(farthest_seed, items_.size()) &&
           !(items_[s].nests.size() == 1 && is_seed(items_[s].nests[0], target_)))
      ++s;
    if (s == std::min(farthest_seed, items_.size())) return std::nullopt;
    RowGroup group(items_[s].nests[0], dependences_);
    // A nest may share no operand with those before it, but with one behind it.
    const std::size_t end = std::min(items_.size(), s + farthest_seed);
    for (bool is_new = true; is_new;) {
      is_new = false;
      for (std::size_t i = 0; i < end; ++i)
        is_new |= items_[i].nests.size() == 1 && group.learn(items_[i].nests[0]);
    }
    std::vector<std::size_t> members;
    Touched by_skipped;
    for (std::size_t i = 0;
         i < items_.size() && group.size() < most_together && i - members.size() <= most_skipped;
         ++i) {
      const Item& item = items_[i];
      const LoopNest& nest = item.nests[0];
      const bool may_come_first = !dependences_.touched_by(nest).conflicts(by_skipped);
      if (item.nests.size() == 1 && may_come_first && group.take_in(nest)) {
        members.push_back(i);
        continue;
      }
      if (i == 0) return std::nullopt;
      by_skipped.add(dependences_.touched_by(item.nests, item.group.attention()));
    }
    if (members.size() < 2 || !group.has_reduction()) return std::nullopt;
    Item result;
    result.group.form = Program::Group::Rows{group.row_axes()};
    result.nests = group.take();
    std::vector<int> uses_here(uses_.size(), 0);
    for (const LoopNest& nest : result.nests) count(nest, uses_here);
    for (const LoopNest& nest : result.nests) {
      const auto b = static_cast<std::size_t>(nest.output.buffer);
      const bool is_kept = std::find(kept_.begin(), kept_.end(), nest.output.buffer) != kept_.end();
      program_.buffers[b].is_local =
          b >= program_.input_count && uses_here[b] == uses_[b] && !is_kept;
    }
    for (std::size_t m = members.size(); m-- > 0;)
      items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(members[m]));
    return result;
  }

  Program& program_;
  const GpuTarget& target_;
  std::span<const int> kept_;
  Dependences dependences_;
  std::vector<int> uses_;  // of each buffer
  std::vector<Item> items_;
};

}  // namespace

void group_rows(Program& program, const GpuTarget& target, std::span<const int> kept,
                std::span<const int> memory) {
  RowGrouping(program, target, kept, memory).run();
}

}  // namespace ein
