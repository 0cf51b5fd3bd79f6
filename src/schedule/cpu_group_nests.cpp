#include "schedule/cpu_group_nests.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>

#include "nest/dependences.hpp"
#include "schedule/steps.hpp"
#include "size/ask.hpp"
#include "size/size_arithmetic.hpp"
#include "size/size_scope.hpp"

namespace ein {
namespace {

using Group = Program::Group;

/// How many nests may lie between those of a group.
constexpr std::size_t most_passed_over = 4;

Size points(const LoopNest& nest) {
  Size n = 1;
  for (const LoopNest::NestAxis& axis : nest.axes) {
    if (multiply_overflows(n, axis.size, n)) return 0;
  }
  return n;
}

bool is_cut_along(const ScalarExpr& expr, std::size_t axis) {
  return !draws(expr) && !asks_index(expr, axis);
}

/// Whether `length` points of an axis are a short piece of each of many lines of an operand.
bool cuts_lines(const LoopNest& nest, const LoopNest::Operand& operand, std::size_t axis,
                Size length, const Target& target) {
  const Size stride = magnitude(operand.strides[axis]);
  if (ask_equal(stride, 0) || stride * length >= target.least_run) return false;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (a != axis && nest.axes[a].size > 1 && magnitude(operand.strides[a]) > stride) return true;
  }
  return false;
}

/// Whether b divides a for all lengths.
bool is_multiple(Size a, Size b) { return always_equal(a % b, 0); }

/// How an operand is cut into blocks, block-cyclically: block k has the pieces k, k + blocks,
/// k + 2·blocks, ... of `step` elements.
struct Blocks {
  Size step = 0;
  bool is_compact = false;  // one piece to a block, and the first begins at 0
};

std::optional<Blocks> blocks_of(const LoopNest& nest, const LoopNest::Operand& operand,
                                std::size_t axis, Size blocks) {
  const Size length = nest.axes[axis].size / blocks, stride = operand.strides[axis];
  if (operand.is_indirect() || stride <= 0) return std::nullopt;
  Size step, period, reach = (length - 1) * stride;
  if (multiply_overflows(length, stride, step) || multiply_overflows(step, blocks, period))
    return std::nullopt;
  bool is_compact = operand.offset < step;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (a == axis || always_equal(operand.strides[a], 0)) continue;
    if (operand.strides[a] < 0) return std::nullopt;
    if (is_multiple(operand.strides[a], period)) {
      is_compact &= is_one(nest.axes[a].size);
    } else {
      reach += (nest.axes[a].size - 1) * operand.strides[a];
    }
  }
  const Size within = is_multiple(operand.offset, period) ? Size(0) : operand.offset % period;
  if (within + reach >= step) return std::nullopt;
  return Blocks{step, is_compact};
}

/// A reduction as two: of each block of its axis, and of what the blocks give.
struct Halves {
  std::size_t nest, axis;
  LoopNest of_blocks, of_all;
  Program::Buffer between;
};

/// The one reduced axis of a nest that could be two, with the results side by side in memory.
std::optional<std::size_t> axis_to_halve(const LoopNest& nest) {
  if (!nest.combine || nest.along != LoopNest::Along::nothing || nest.sums_products() ||
      nest.is_scatter())
    return std::nullopt;
  std::optional<std::size_t> result;
  Size results = 1, reach = 0;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (!nest.axes[a].reduced) {
      results *= nest.axes[a].size;
      reach += (nest.axes[a].size - 1) * magnitude(nest.output.strides[a]);
    } else if (result) {
      return std::nullopt;
    } else {
      result = a;
    }
  }
  return result && always_equal(reach + 1, results) && is_cut_along(nest.body, *result)
             ? result
             : std::nullopt;
}

/// Nest n of a program, cut along an axis that has `blocks` blocks, if there is one; `buffer` holds
/// the blocks' results.
std::optional<Halves> halve(const LoopNest& nest, std::size_t n, Size blocks, int buffer,
                            const Target& target) {
  const auto axis = axis_to_halve(nest);
  if (!axis || !is_multiple(nest.axes[*axis].size, blocks)) return std::nullopt;
  const std::size_t cut = *axis;
  const Size size = nest.axes[cut].size, length = size / blocks;
  if (length < target.least_in_half || length > target.most_in_half) return std::nullopt;
  const Size results = points(nest) / size;
  Halves halves{n, cut, nest, nest, {blocks * results, nest.compute}};
  LoopNest& first = halves.of_blocks;
  first.epilogue = {};
  first.axes[cut] = {nest.axes[cut].name, blocks};
  first.axes.push_back({nest.axes[cut].name, length, true});
  for (LoopNest::Operand& input : first.inputs) {
    input.strides.push_back(input.strides[cut]);
    input.strides[cut] *= length;
  }
  LoopNest::Operand between{
      .buffer = buffer, .dtype = nest.compute, .strides = nest.output.strides};
  between.strides[cut] = results;
  first.output = between;
  first.output.strides.push_back(0);
  LoopNest& second = halves.of_all;
  second.joins = true;
  second.axes[cut].size = blocks;
  second.body = Ex::input(0);
  if (second.inputs.empty()) second.inputs.emplace_back();
  second.inputs[0] = std::move(between);
  return halves;
}

/// A group of nests that may lie apart as yet.
struct Found {
  Group group;
  std::vector<std::size_t> members;
  std::deque<Halves> halves;  // of members
  std::vector<int> compact;   // buffers that the group writes, and whose blocks could lie at one
                              // place, one after the other
};

/// A group as it grows. Others among its nests are passed over, and come after it.
class Grouping {
 public:
  Grouping(const Program& program, const Target& target, std::span<const int> memory,
           std::size_t first, std::size_t end, const Group::Blocks& blocks)
      : program_(program),
        target_(target),
        dependences_(memory),
        group_{.first = first, .count = 0},
        blocks_(blocks) {
    std::size_t passed_over = 0;
    for (std::size_t n = first; n < end && passed_over <= most_passed_over; ++n) {
      const LoopNest& nest = program.nests[n];
      if (may_come_here(nest) && (take_in(nest) || take_in_half(n))) {
        members_.push_back(n);
      } else if (members_.empty()) {
        break;
      } else {
        of_later_.add(dependences_.touched_by(nest));
        ++passed_over;
      }
    }
  }

  std::size_t count() const { return members_.size(); }
  Found found() && {
    group_.count = members_.size();
    group_.form = std::move(blocks_);
    std::vector<int> compact;
    for (const auto& [buffer, use] : uses_) {
      if (static_cast<std::size_t>(buffer) >= program_.buffers.size()) continue;
      const bool is_whole = always_equal(
          use.step * blocks_.count, program_.buffers[static_cast<std::size_t>(buffer)].elements);
      if (use.is_written && use.is_cut && use.is_compact && is_whole) compact.push_back(buffer);
    }
    return {std::move(group_), std::move(members_), std::move(halves_), std::move(compact)};
  }

 private:
  struct Use {
    bool is_written = false, is_cut = true, is_compact = true;
    bool is_known = false;  // how it is cut
    int buffer = -1;
    Size step = 0;
  };

  int memory_of(int buffer) const { return dependences_.memory_of(buffer); }

  /// Before those that come later: it touches nothing that they write, and writes nothing that they
  /// read. Other phases stay where they are, as what they keep would be kept for longer.
  bool may_come_here(const LoopNest& nest) const {
    if (of_later_.written.empty()) return true;
    if (nest.phase != program_.nests[members_.back()].phase) return false;
    return !dependences_.touched_by(nest).conflicts(of_later_);
  }

  bool take_in(const LoopNest& nest) {
    // The errors of a function of matrices name indices, which blocks would change.
    if (nest.is_scatter() || nest.is_matrix() || nest.is_collective() || !shares_memory(nest))
      return false;
    if (reuses(nest, target_)) return false;
    for (std::size_t axis = 0; axis < nest.axes.size(); ++axis) {
      const LoopNest::NestAxis& cut = nest.axes[axis];
      if (cut.reduced || cut.ordered || ask_equal(cut.size, 0) ||
          !is_multiple(cut.size, blocks_.count) || !is_cut_along(nest.body, axis))
        continue;
      // Cutting a matrix product's rows or columns would prepare its other operand again and again.
      if (nest.sums_products() && (ask_equal(nest.inputs[0].strides[axis], 0) ||
                                   ask_equal(nest.inputs[1].strides[axis], 0)))
        continue;
      if (take_in_along(nest, axis)) return true;
    }
    return false;
  }

  /// A reduction over what others do block by block, of which the last half comes later.
  bool take_in_half(std::size_t n) {
    if (members_.empty() || !is_one(blocks_.at_once)) return false;
    auto halves = halve(program_.nests[n], n, blocks_.count,
                        static_cast<int>(program_.buffers.size() + halves_.size()), target_);
    if (!halves || !reads_along(halves->of_blocks, halves->axis) ||
        !take_in_along(halves->of_blocks, halves->axis))
      return false;
    halves_.push_back(*std::move(halves));
    of_later_.add(dependences_.touched_by(halves_.back().of_all));
    return true;
  }

  /// Whether an input's blocks are those that the group has at hand.
  bool reads_along(const LoopNest& nest, std::size_t axis) const {
    return std::any_of(nest.inputs.begin(), nest.inputs.end(), [&](const LoopNest::Operand& input) {
      const auto use = uses_.find(memory_of(input.buffer));
      const auto blocks = blocks_of(nest, input, axis, blocks_.count);
      return use != uses_.end() && use->second.is_cut && blocks &&
             always_equal(blocks->step, use->second.step);
    });
  }

  bool take_in_along(const LoopNest& nest, std::size_t axis) {
    const auto is_cut_short = [&](const LoopNest::Operand& operand) {
      return cuts_lines(nest, operand, axis, nest.axes[axis].size / blocks_.count * blocks_.at_once,
                        target_);
    };
    if (std::any_of(nest.inputs.begin(), nest.inputs.end(), is_cut_short) ||
        is_cut_short(nest.output))
      return false;
    std::map<int, Use> uses = uses_;
    for (const LoopNest::Operand& input : nest.inputs) note(uses, nest, input, axis, false);
    note(uses, nest, nest.output, axis, true);
    if (std::any_of(uses.begin(), uses.end(),
                    [](const auto& use) { return use.second.is_written && !use.second.is_cut; }))
      return false;
    uses_ = std::move(uses);
    blocks_.axes.push_back(axis);
    return true;
  }

  /// With the group so far: without that, nothing is gained.
  bool shares_memory(const LoopNest& nest) const {
    const auto is_used = [&](const LoopNest::Operand& operand) {
      return uses_.contains(memory_of(operand.buffer));
    };
    return uses_.empty() || is_used(nest.output) ||
           std::any_of(nest.inputs.begin(), nest.inputs.end(), is_used);
  }

  void note(std::map<int, Use>& uses, const LoopNest& nest, const LoopNest::Operand& operand,
            std::size_t axis, bool is_written) const {
    Use& use = uses[memory_of(operand.buffer)];
    const auto blocks = blocks_of(nest, operand, axis, blocks_.count);
    // Buffers that share memory begin at places of their own.
    const bool is_one_buffer = use.buffer < 0 || use.buffer == operand.buffer;
    use.buffer = operand.buffer;
    use.is_cut = use.is_cut && is_one_buffer && blocks &&
                 (!use.is_known || always_equal(use.step, blocks->step));
    if (blocks) use.step = blocks->step, use.is_known = true;
    use.is_compact = use.is_compact && blocks && blocks->is_compact;
    use.is_written |= is_written;
  }

  const Program& program_;
  const Target& target_;
  Dependences dependences_;
  Group group_;
  Group::Blocks blocks_;
  std::map<int, Use> uses_;  // by memory
  std::vector<std::size_t> members_;
  std::deque<Halves> halves_;
  Touched of_later_;  // nests that are passed over, and the last halves of members
};

/// Makes the members follow each other, in order, from where the first is, and the last halves
/// follow them.
void bring_together(Program& program, const Found& found) {
  for (const Halves& halves : found.halves) {
    program.nests[halves.nest] = halves.of_blocks;
    program.buffers.push_back(halves.between);
  }
  const auto at = [&](std::size_t n) {
    return program.nests.begin() + static_cast<std::ptrdiff_t>(n);
  };
  std::size_t to = found.group.first;
  for (std::size_t from : found.members) {
    std::rotate(at(to), at(from), at(from + 1));
    ++to;
  }
  for (const Halves& halves : found.halves) program.nests.insert(at(to++), halves.of_all);
}

/// Ways to cut that are worth trying for a group that begins with `nest`, the best first: many
/// small blocks.
std::vector<Group::Blocks> blockings(const LoopNest& nest, const Target& target) {
  const Size all = points(nest),
             most = std::min<Size>(all / target.elements_per_block, target.most_blocks);
  if (most < 2) return {};
  const Size least =
      std::max<Size>(2, std::min<Size>(target.most_blocks, all / target.most_elements_per_block));
  std::vector<Group::Blocks> found;
  const auto is_cut = [](const LoopNest::NestAxis& axis) { return !axis.reduced && !axis.ordered; };
  // As many pieces as a factor of an axis has, several at once; the last block may have fewer.
  const auto add_several_at_once = [&](Size factor) {
    const Size in_piece = all / factor,
               at_once = in_piece < target.elements_per_block
                             ? ceil_div(Size(target.elements_per_block), in_piece)
                             : Size(1);
    if (at_once < factor) found.push_back({factor, {}, at_once});
  };
  for (const LoopNest::NestAxis& axis : nest.axes) {
    if (!is_cut(axis) || axis.size.is_number()) continue;
    for (const Size factor : factors_of(axis.size)) add_several_at_once(factor);
  }
  std::vector<std::int64_t> counts;
  for (const LoopNest::NestAxis& axis : nest.axes) {
    if (!is_cut(axis) || !axis.size.is_number()) continue;
    const std::size_t before = counts.size();
    for (std::int64_t n = 2; n <= std::min<Size>(axis.size, target.most_blocks); ++n) {
      if (ask_equal(axis.size % n, 0) && n >= least && n <= most) counts.push_back(n);
    }
    // A length that has no such factor, as a prime.
    if (counts.size() == before) add_several_at_once(axis.size);
  }
  std::sort(counts.rbegin(), counts.rend());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (const std::int64_t n : counts) found.push_back({n});
  return found;
}

bool is_used_by_group_alone(const Program& program, const Group& group, int buffer) {
  for (std::size_t n = 0; n < program.nests.size(); ++n) {
    if (n >= group.first && n < group.first + group.count) continue;
    const LoopNest& nest = program.nests[n];
    const auto is_it = [&](const LoopNest::Operand& operand) { return operand.buffer == buffer; };
    if (is_it(nest.output) || std::any_of(nest.inputs.begin(), nest.inputs.end(), is_it))
      return false;
  }
  return true;
}

/// Makes a group of nest `first` and others before nest `end`; returns how many nests it has.
std::size_t add_group(Program& program, const Target& target, std::span<const int> kept,
                      std::span<const int> memory, std::size_t first, std::size_t end) {
  Found best{{.first = first}, {first}, {}, {}};
  const bool is_last = first + 1 == end;
  for (const Group::Blocks& blocks :
       is_last ? std::vector<Group::Blocks>() : blockings(program.nests[first], target)) {
    Grouping grouping(program, target, memory, first, end, blocks);
    if (grouping.count() > best.group.count) best = std::move(grouping).found();
  }
  bring_together(program, best);
  for (int b : best.compact) {
    const auto i = static_cast<std::size_t>(b);
    const bool is_kept = std::find(kept.begin(), kept.end(), b) != kept.end();
    program.buffers[i].is_local =
        i >= program.input_count && !is_kept && is_used_by_group_alone(program, best.group, b);
  }
  program.groups.push_back(std::move(best.group));
  return program.groups.back().count;
}

}  // namespace

void group_nests(Program& program, const Target& target, std::span<const int> kept,
                 std::span<const int> memory) {
  for (std::size_t b = 0; b < std::min(memory.size(), program.buffers.size()); ++b)
    program.buffers[b].memory = memory[b];
  std::vector<Group> attentions;
  for (Group& group : program.groups) {
    if (group.attention()) attentions.push_back(std::move(group));
  }
  program.groups.clear();
  const std::size_t given = program.nests.size();
  std::size_t first = 0;
  for (Group& attention : attentions) {
    // Grouping may have inserted nests before it.
    const auto start = [&] { return attention.first + (program.nests.size() - given); };
    while (first < start()) first += add_group(program, target, kept, memory, first, start());
    attention.first = first;
    first += attention.count;
    program.groups.push_back(std::move(attention));
  }
  while (first < program.nests.size())
    first += add_group(program, target, kept, memory, first, program.nests.size());
}

}  // namespace ein
