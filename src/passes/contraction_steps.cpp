#include "passes/contraction_steps.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <ein/error.hpp>
#include "passes/fusion.hpp"
#include "size/ask.hpp"
#include "size/size_scope.hpp"

namespace ein {

std::vector<int> axes_along(const Access& access) {
  std::vector<int> axes;
  for (const DimIndex& dim : access) {
    for (const DimIndex::Term& term : dim.terms) axes.push_back(term.axis);
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

namespace {

constexpr std::size_t max_exact_operands = 10;
constexpr double infinity = std::numeric_limits<double>::infinity();

[[noreturn]] void fail_limit(std::int64_t limit) {
  if (limit == 0)
    throw Error(ErrorKind::memory, "einsum: the intermediate results of every order are too large");
  throw Error(ErrorKind::memory,
              "einsum: no order of contraction keeps every intermediate result within " +
                  std::to_string(limit) + " elements");
}

/// As many as the map that multiplies them has reads and steps, to be one nest with their sum. Each
/// part of a complex product reads both parts of every operand, and has twice as many steps for
/// each operand more.
std::size_t most_at_once(const Op& op) {
  return is_complex(op.dtype) ? 4 : FusedSize::most_reads - 1;
}

/// What a search wants to know of a contraction.
struct Network {
  struct Axis {
    double size = 1;
    bool in_output = false;
    int users = 0;  // operands that have it
  };
  std::vector<Axis> axes;
  std::vector<std::vector<int>> operands;  // the axes of each, in order
  std::int64_t limit = 0;
  std::size_t most_at_once = 2;

  Network(const Op& op, std::int64_t max_intermediate)
      : axes(op.axes.size()), limit(max_intermediate), most_at_once(ein::most_at_once(op)) {
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      // Two operands have one order.
      if (op.inputs.size() > 2 || limit > 0)
        axes[a].size = static_cast<double>(about(op.axes[a].size));
    }
    for (int axis : axes_along(op.write)) at(axis).in_output = true;
    for (const Access& read : op.reads) {
      operands.push_back(axes_along(read));
      for (int axis : operands.back()) ++at(axis).users;
    }
  }

  Axis& at(int axis) { return axes[static_cast<std::size_t>(axis)]; }
  const Axis& at(int axis) const { return axes[static_cast<std::size_t>(axis)]; }
  bool exceeds_limit(double elements) const {
    return limit > 0 && elements > static_cast<double>(limit);
  }
};

/// Over all ways to split every subset of operands in two; where the limit allows none of them, in
/// any number of parts.
class ExactSteps {
 public:
  explicit ExactSteps(const Network& network)
      : network_(network), n_(static_cast<unsigned>(network.operands.size())) {
    std::vector<unsigned> operands_of(network.axes.size());
    for (unsigned i = 0; i < n_; ++i) {
      for (int axis : network.operands[i]) operands_of[static_cast<std::size_t>(axis)] |= 1u << i;
    }
    for (std::size_t a = 0; a < operands_of.size(); ++a) add(operands_of[a], network.axes[a]);
    summed_late_.assign(std::size_t{1} << n_, not_late);
    for (const Use& use : axes_) {
      const bool is_own = !use.in_output && std::has_single_bit(use.operands);
      if (is_own && exceeds_limit(use.operands)) summed_late_[use.operands] = use.size;
    }
  }

  ContractionSteps find() {
    const unsigned all = (1u << n_) - 1;
    search(all, 2);
    if (cost_[all] == infinity && network_.limit > 0) search(all, network_.most_at_once);
    if (cost_[all] == infinity) fail_limit(network_.limit);
    ContractionSteps found;
    for (unsigned i = 0; i < n_; ++i)
      found.is_summed_first.push_back(summed_late_[1u << i] == not_late);
    emit(all, found.steps);
    return found;
  }

 private:
  struct Use {
    unsigned operands;
    bool in_output;
    double size;
  };
  struct Parts {
    std::array<unsigned, max_exact_operands> sets{};
    std::size_t count = 0;
    std::span<const unsigned> span() const { return {sets.data(), count}; }
  };

  /// Axes that the same operands have behave as one.
  void add(unsigned operands, const Network::Axis& axis) {
    const auto same = std::find_if(axes_.begin(), axes_.end(), [&](const Use& use) {
      return use.operands == operands && use.in_output == axis.in_output;
    });
    if (same == axes_.end()) {
      axes_.push_back({operands, axis.in_output, axis.size});
    } else {
      same->size *= axis.size;
    }
  }

  void search(unsigned all, std::size_t most_parts) {
    cost_.assign(all + 1, infinity);
    parts_.assign(all + 1, {});
    for (unsigned i = 0; i < n_; ++i) cost_[1u << i] = reduction_cost(1u << i);
    for (unsigned set = 1; set <= all; ++set) {
      if (std::has_single_bit(set) || (set != all && exceeds_limit(set))) continue;
      if (most_parts == 2) {
        split_in_two(set);
      } else {
        Parts parts;
        split(set, set, 0, parts, most_parts);
      }
    }
  }

  void split_in_two(unsigned set) {
    const unsigned lowest = set & (~set + 1);  // each split once
    for (unsigned part = (set - 1) & set; part > 0; part = (part - 1) & set) {
      if (!(part & lowest)) continue;
      const std::array parts{part, set ^ part};
      const double apart = cost_[part] + cost_[set ^ part];
      if (apart >= cost_[set]) continue;
      const double whole = apart + joint_cost(parts, set);
      if (whole >= cost_[set]) continue;
      cost_[set] = whole;
      parts_[set] = {{part, set ^ part}, 2};
    }
  }
  /// Tries all ways to split what is `left` of `set` in parts beside `parts`, which cost so much.
  void split(unsigned set, unsigned left, double cost, Parts& parts, std::size_t most_parts) {
    const unsigned lowest = left & (~left + 1);
    const std::size_t last = parts.count++;
    const bool takes_all = parts.count == most_parts;
    for (unsigned part = left; part > 0; part = takes_all ? 0 : (part - 1) & left) {
      if (!(part & lowest) || part == set) continue;
      const double apart = cost + cost_[part];
      if (apart >= cost_[set]) continue;
      parts.sets[last] = part;
      if (part != left) {
        split(set, left ^ part, apart, parts, most_parts);
      } else if (const double whole = apart + joint_cost(parts.span(), set); whole < cost_[set]) {
        cost_[set] = whole;
        parts_[set] = parts;
      }
    }
    --parts.count;
  }

  /// Whether the contraction of `set` still has the axis.
  static bool is_kept(const Use& use, unsigned set) {
    return (use.operands & set) && (use.in_output || (use.operands & ~set));
  }
  /// Summing what only this operand has, before anything else.
  double reduction_cost(unsigned operand) const {
    double elements = 1;
    bool reduces = false;
    for (const Use& use : axes_) {
      if (!(use.operands & operand)) continue;
      elements *= use.size;
      reduces |= !is_kept(use, operand) && summed_late_[operand] == not_late;
    }
    return reduces ? elements : 0;
  }
  template <class Sets>
  double joint_cost(const Sets& parts, unsigned set) const {
    double tuples = 1;
    bool reduces = false;
    for (unsigned part : parts) {
      if (summed_late_[part] == not_late) continue;
      tuples *= summed_late_[part];
      reduces = true;
    }
    for (const Use& use : axes_) {
      bool is_there = false;
      for (unsigned part : parts) is_there |= is_kept(use, part);
      if (!is_there) continue;
      tuples *= use.size;
      reduces |= !(use.in_output || (use.operands & ~set));
    }
    return tuples * static_cast<double>(parts.size() - (reduces ? 0 : 1));
  }
  bool exceeds_limit(unsigned set) const {
    double elements = 1;
    for (const Use& use : axes_) elements *= is_kept(use, set) ? use.size : 1;
    return network_.exceeds_limit(elements);
  }
  int emit(unsigned set, std::vector<std::vector<int>>& steps) const {
    if (std::has_single_bit(set)) return std::countr_zero(set);
    std::vector<int> step;
    for (unsigned part : parts_[set].span()) step.push_back(emit(part, steps));
    steps.push_back(std::move(step));
    return static_cast<int>(n_ + steps.size()) - 1;
  }

  const Network& network_;
  unsigned n_;
  std::vector<Use> axes_;
  /// Of an operand that exceeds the limit even when its own axes are summed: the size of these,
  /// which the step that multiplies it sums.
  static constexpr double not_late = -1;
  std::vector<double> summed_late_;
  std::vector<double> cost_;
  std::vector<Parts> parts_;  // of the cheapest split of each set
};

/// Takes the pair whose product shrinks the data most, again and again. What a pair has to do with
/// the others, the axes that they want, stays the same while both are there: a queue of pairs needs
/// no other care than to leave out those of which one is gone.
class GreedySteps {
 public:
  explicit GreedySteps(Network network) : network_(std::move(network)) {
    const std::size_t n = network_.operands.size();
    most_partners_ = std::max<std::size_t>(16, candidates / n);
    holders_.resize(network_.axes.size());
    for (std::size_t i = 0; i < n; ++i) {
      const std::vector<int> own = std::move(network_.operands[i]);
      std::vector<int> summed = kept_of(own, [](int) { return 1; });
      const bool fits = !network_.exceeds_limit(elements_of(summed));
      found_.is_summed_first.push_back(fits);
      network_.operands[i] = fits ? std::move(summed) : own;
      add(static_cast<int>(i));
    }
  }

  ContractionSteps find() {
    while (by_size_.size() > 1) take(next());
    return std::move(found_);
  }

 private:
  /// The operands that have an axis, from `begin` on; some of them are gone.
  struct Holders {
    std::vector<int> all;
    std::size_t begin = 0;
  };
  /// A product of two operands: by how much it grows the data.
  struct Pair {
    double growth;
    int first, second;
    friend auto operator<=>(const Pair&, const Pair&) = default;
  };
  /// The most pairs that are looked at before the first step, and about as many after it. It bounds
  /// memory and time where very many operands share an axis.
  static constexpr std::size_t candidates = std::size_t{1} << 18;

  const std::vector<int>& axes_of(int operand) const {
    return network_.operands[static_cast<std::size_t>(operand)];
  }
  bool is_there(int operand) const { return is_there_[static_cast<std::size_t>(operand)]; }
  double elements_of(const std::vector<int>& axes) const {
    double elements = 1;
    for (int axis : axes) elements *= network_.at(axis).size;
    return elements;
  }
  /// Of these axes those that the result or an operand besides `counted(axis)` of them has.
  template <class Count>
  std::vector<int> kept_of(const std::vector<int>& axes, const Count& counted) const {
    std::vector<int> kept;
    for (int axis : axes) {
      const Network::Axis& a = network_.at(axis);
      if (a.in_output || a.users > counted(axis)) kept.push_back(axis);
    }
    return kept;
  }
  static bool has(const std::vector<int>& axes, int axis) {
    return std::binary_search(axes.begin(), axes.end(), axis);
  }
  /// The axes of the product of two operands with these axes.
  std::vector<int> product(const std::vector<int>& a, const std::vector<int>& b) const {
    std::vector<int> all;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
    return kept_of(all, [&](int axis) { return int{has(a, axis)} + int{has(b, axis)}; });
  }
  /// The elements of that product.
  double product_elements(const std::vector<int>& a, const std::vector<int>& b) const {
    double elements = 1;
    auto i = a.begin(), j = b.begin();
    while (i != a.end() || j != b.end()) {
      const bool in_a = j == b.end() || (i != a.end() && *i <= *j);
      const bool in_b = i == a.end() || (j != b.end() && *j <= *i);
      const Network::Axis& axis = network_.at(in_a ? *i : *j);
      if (axis.in_output || axis.users > int{in_a} + int{in_b}) elements *= axis.size;
      i += in_a;
      j += in_b;
    }
    return elements;
  }

  /// The pair as a candidate; none where the product exceeds the limit.
  std::optional<Pair> pair_of(int first, int second) const {
    const double elements = product_elements(axes_of(first), axes_of(second));
    if (elements == infinity || network_.exceeds_limit(elements)) return std::nullopt;
    const double growth = elements - elements_of(axes_of(first)) - elements_of(axes_of(second));
    return Pair{growth, std::min(first, second), std::max(first, second)};
  }

  /// Makes `operand` one of those that are there, with its pairs.
  void add(int operand) {
    is_there_.resize(static_cast<std::size_t>(operand) + 1, true);
    met_.resize(is_there_.size(), -1);
    by_size_.emplace(elements_of(axes_of(operand)), operand);
    // Those that share an axis with few others come first.
    std::vector<int> axes = axes_of(operand);
    std::sort(axes.begin(), axes.end(), [&](int a, int b) {
      return std::pair(network_.at(a).users, a) < std::pair(network_.at(b).users, b);
    });
    std::size_t partners = 0;
    for (int axis : axes) {
      Holders& holders = holders_[static_cast<std::size_t>(axis)];
      visit(holders, [&](int other) {
        if (partners == most_partners_) return false;
        if (std::exchange(met_[static_cast<std::size_t>(other)], operand) == operand) return true;
        ++partners;
        if (const auto pair = pair_of(other, operand)) pairs_.push(*pair);
        return true;
      });
      holders.all.push_back(operand);
    }
  }

  /// Calls f for the holders that are there, the first to come first, until it returns false.
  /// Those that are gone are met once: the others move behind them.
  template <class F>
  void visit(Holders& holders, const F& f) const {
    std::vector<int>& all = holders.all;
    std::size_t end = holders.begin;
    std::vector<int> met;
    for (; end < all.size(); ++end) {
      if (!is_there(all[end])) continue;
      if (!f(all[end])) break;
      met.push_back(all[end]);
    }
    holders.begin = end - met.size();
    std::copy(met.begin(), met.end(), all.begin() + static_cast<std::ptrdiff_t>(holders.begin));
  }

  /// The operands of the next step.
  std::vector<int> next() {
    if (by_size_.size() == 2) {
      const auto [first, second] = std::minmax(by_size_.begin()->second, by_size_.rbegin()->second);
      return {first, second};
    }
    while (!pairs_.empty() && !(is_there(pairs_.top().first) && is_there(pairs_.top().second)))
      pairs_.pop();
    // Of the pairs that share no axis that of the smallest two grows the data least.
    std::optional<Pair> best =
        pair_of(by_size_.begin()->second, std::next(by_size_.begin())->second);
    if (!pairs_.empty() && (!best || pairs_.top() < *best)) best = pairs_.top();
    return best ? std::vector<int>{best->first, best->second} : more_than_two();
  }

  /// The smallest operand and, one after the other, the one with which the product is the smallest,
  /// until that keeps the limit.
  std::vector<int> more_than_two() const {
    if (network_.limit == 0) fail_limit(0);
    std::vector<int> step{by_size_.begin()->second};
    while (true) {
      if (step.size() == by_size_.size()) return step;
      if (step.size() == network_.most_at_once) fail_limit(network_.limit);
      double least = infinity;
      int with = -1;
      for (const auto& [size, operand] : by_size_) {
        if (std::find(step.begin(), step.end(), operand) != step.end()) continue;
        step.push_back(operand);
        const double elements = elements_of(result_of(step));
        step.pop_back();
        if (elements >= least && with >= 0) continue;
        least = elements;
        with = operand;
      }
      step.push_back(with);
      if (!network_.exceeds_limit(least)) return step;
    }
  }
  /// The axes of what a step makes.
  std::vector<int> result_of(const std::vector<int>& step) const {
    if (step.size() == 2) return product(axes_of(step[0]), axes_of(step[1]));
    std::vector<int> all;
    for (int operand : step)
      all.insert(all.end(), axes_of(operand).begin(), axes_of(operand).end());
    std::sort(all.begin(), all.end());
    std::vector<int> axes = all;
    axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    return kept_of(axes, [&](int axis) {
      const auto [begin, end] = std::equal_range(all.begin(), all.end(), axis);
      return static_cast<int>(end - begin);
    });
  }

  void take(std::vector<int> step) {
    std::vector<int> axes = result_of(step);
    for (int operand : step) {
      for (int axis : axes_of(operand)) --network_.at(axis).users;
      by_size_.erase({elements_of(axes_of(operand)), operand});
      is_there_[static_cast<std::size_t>(operand)] = false;
    }
    for (int axis : axes) ++network_.at(axis).users;
    network_.operands.push_back(std::move(axes));
    found_.steps.push_back(std::move(step));
    add(static_cast<int>(network_.operands.size()) - 1);
  }

  Network network_;
  std::size_t most_partners_ = 0;
  std::vector<bool> is_there_;
  std::vector<int> met_;          // the last operand whose pair with this one was looked at
  std::vector<Holders> holders_;  // of each axis
  std::set<std::pair<double, int>> by_size_;  // those that are there
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs_;
  ContractionSteps found_;
};

}  // namespace

ContractionSteps contraction_steps(const Op& op, std::int64_t max_intermediate) {
  Network network(op, max_intermediate);
  if (op.inputs.size() <= max_exact_operands) return ExactSteps(network).find();
  return GreedySteps(std::move(network)).find();
}

}  // namespace ein
