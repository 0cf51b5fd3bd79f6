#include "passes/group_nests.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

namespace ein {
namespace {

using Group = Program::Group;

/// Blocks of fewer elements cost more in calls than they save in memory traffic, those of more leave the cache.
constexpr std::int64_t elements_per_block = 8192, most_elements_per_block = 16 * elements_per_block;
constexpr std::int64_t most_blocks = 1024;
/// Shorter pieces of memory, one here and one there, come slowly.
constexpr std::int64_t least_run = 256;
/// How many nests may lie between those of a group.
constexpr std::size_t most_passed_over = 4;

std::int64_t points(const LoopNest& nest) {
  std::int64_t n = 1;
  for (const LoopNest::NestAxis& axis : nest.axes) {
    if (__builtin_mul_overflow(n, axis.size, &n)) return 0;
  }
  return n;
}

bool is_cut_along(const ScalarExpr& expr, std::size_t axis) {
  return !draws(expr) &&
         std::none_of(expr.steps.begin(), expr.steps.end(), [&](const ScalarStep& step) {
           return step.op == ScalarOp::index && static_cast<std::size_t>(step.which) == axis;
         });
}

/// Whether `length` points of an axis are a short piece of each of many lines of an operand.
bool cuts_lines(const LoopNest& nest, const LoopNest::Operand& operand, std::size_t axis, std::int64_t length) {
  const std::int64_t stride = std::abs(operand.strides[axis]);
  if (stride == 0 || stride * length >= least_run) return false;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (a != axis && nest.axes[a].size > 1 && std::abs(operand.strides[a]) > stride) return true;
  }
  return false;
}

/// How an operand's accesses fall into blocks: those of block k lie in pieces of `step` elements, of which every
/// blocks-th belongs to it.
struct Blocks {
  std::int64_t step = 0;
  bool is_compact = false;  // one piece to a block, and the first begins at 0
};

std::optional<Blocks> blocks_of(const LoopNest& nest, const LoopNest::Operand& operand, std::size_t axis, std::int64_t blocks) {
  const std::int64_t length = nest.axes[axis].size / blocks, stride = operand.strides[axis];
  if (operand.is_indirect() || stride <= 0) return std::nullopt;
  std::int64_t step, period, reach = (length - 1) * stride;
  if (__builtin_mul_overflow(length, stride, &step) || __builtin_mul_overflow(step, blocks, &period)) return std::nullopt;
  bool is_compact = operand.offset < step;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (a == axis || operand.strides[a] == 0) continue;
    if (operand.strides[a] < 0) return std::nullopt;
    if (operand.strides[a] % period == 0) {
      is_compact &= nest.axes[a].size == 1;
    } else {
      reach += (nest.axes[a].size - 1) * operand.strides[a];
    }
  }
  if (operand.offset % period + reach >= step) return std::nullopt;
  return Blocks{step, is_compact};
}

/// A group as it grows. Others among its nests are passed over, and come after it.
class Grouping {
 public:
  Grouping(const Program& program, std::span<const int> memory, std::size_t first, std::int64_t blocks)
      : program_(program), memory_(memory), group_{first, 0, blocks, {}} {
    for (std::size_t n = first; n < program.nests.size() && passed_over_.size() <= most_passed_over; ++n) {
      if (may_come_here(program.nests[n]) && take_in(program.nests[n])) {
        members_.push_back(n);
      } else if (members_.empty()) {
        break;
      } else {
        passed_over_.push_back(&program.nests[n]);
      }
    }
    group_.count = members_.size();
  }
  const Group& group() const { return group_; }
  const std::vector<std::size_t>& members() const { return members_; }

  /// Of the buffers that the group writes, those whose blocks could lie at one place, one after the other.
  std::vector<int> compact() const {
    std::vector<int> result;
    for (const auto& [buffer, use] : uses_) {
      const bool is_whole = use.step * group_.blocks == program_.buffers[static_cast<std::size_t>(buffer)].elements;
      if (use.is_written && use.is_cut && use.is_compact && is_whole) result.push_back(buffer);
    }
    return result;
  }

 private:
  struct Use {
    bool is_written = false, is_cut = true, is_compact = true;
    std::int64_t step = -1;
  };

  int memory_of(int buffer) const {
    const auto b = static_cast<std::size_t>(buffer);
    return b < memory_.size() ? memory_[b] : buffer;
  }

  /// Before those that were passed over: it touches nothing that they write, and writes nothing that they read. Other phases
  /// stay where they are, as what they keep would be kept for longer.
  bool may_come_here(const LoopNest& nest) const {
    if (passed_over_.empty()) return true;
    if (nest.phase != program_.nests[members_.back()].phase) return false;
    return std::none_of(passed_over_.begin(), passed_over_.end(), [&](const LoopNest* other) {
      const auto touches = [&](const LoopNest& one, const LoopNest::Operand& output) {
        const auto is_same = [&](const LoopNest::Operand& operand) { return memory_of(operand.buffer) == memory_of(output.buffer); };
        return is_same(one.output) || std::any_of(one.inputs.begin(), one.inputs.end(), is_same);
      };
      return touches(nest, other->output) || touches(*other, nest.output);
    });
  }

  bool take_in(const LoopNest& nest) {
    if (nest.is_scatter() || !shares_memory(nest)) return false;
    for (std::size_t axis = 0; axis < nest.axes.size(); ++axis) {
      const LoopNest::NestAxis& cut = nest.axes[axis];
      if (cut.reduced || cut.ordered || cut.size == 0 || cut.size % group_.blocks != 0 || !is_cut_along(nest.body, axis)) continue;
      // Cutting a matrix product's rows or columns would prepare its other operand again and again.
      if (nest.is_contraction() && (nest.inputs[0].strides[axis] == 0 || nest.inputs[1].strides[axis] == 0)) continue;
      const auto is_cut_short = [&](const LoopNest::Operand& operand) { return cuts_lines(nest, operand, axis, cut.size / group_.blocks); };
      if (std::any_of(nest.inputs.begin(), nest.inputs.end(), is_cut_short) || is_cut_short(nest.output)) continue;
      std::map<int, Use> uses = uses_;
      for (const LoopNest::Operand& input : nest.inputs) note(uses, nest, input, axis, false);
      note(uses, nest, nest.output, axis, true);
      if (std::any_of(uses.begin(), uses.end(), [](const auto& use) { return use.second.is_written && !use.second.is_cut; })) continue;
      uses_ = std::move(uses);
      group_.axes.push_back(axis);
      return true;
    }
    return false;
  }

  /// With the group so far: without that, nothing is gained.
  bool shares_memory(const LoopNest& nest) const {
    const auto is_used = [&](const LoopNest::Operand& operand) { return uses_.contains(memory_of(operand.buffer)); };
    return uses_.empty() || is_used(nest.output) || std::any_of(nest.inputs.begin(), nest.inputs.end(), is_used);
  }

  void note(std::map<int, Use>& uses, const LoopNest& nest, const LoopNest::Operand& operand, std::size_t axis, bool is_written) const {
    Use& use = uses[memory_of(operand.buffer)];
    const auto blocks = blocks_of(nest, operand, axis, group_.blocks);
    use.is_cut = use.is_cut && blocks && (use.step < 0 || use.step == blocks->step);
    if (blocks) use.step = blocks->step;
    use.is_compact = use.is_compact && blocks && blocks->is_compact;
    use.is_written |= is_written;
  }

  const Program& program_;
  std::span<const int> memory_;
  Group group_;
  std::map<int, Use> uses_;  // by memory
  std::vector<std::size_t> members_;
  std::vector<const LoopNest*> passed_over_;
};

/// Puts `members`, in order, before those between them; the first stays in its place.
void bring_together(std::vector<LoopNest>& nests, const std::vector<std::size_t>& members) {
  std::size_t to = members.front();
  for (std::size_t from : members) {
    const auto at = [&](std::size_t n) { return nests.begin() + static_cast<std::ptrdiff_t>(n); };
    std::rotate(at(to), at(from), at(from + 1));
    ++to;
  }
}

/// The numbers of blocks worth trying for a group that begins with `nest`, the best first: many small blocks.
std::vector<std::int64_t> block_counts(const LoopNest& nest) {
  const std::int64_t all = points(nest), most = std::min(all / elements_per_block, most_blocks);
  const std::int64_t least = std::max<std::int64_t>(2, std::min(most_blocks, all / most_elements_per_block));
  std::vector<std::int64_t> counts;
  for (const LoopNest::NestAxis& axis : nest.axes) {
    if (axis.reduced || axis.ordered) continue;
    for (std::int64_t n = least; n <= std::min(most, axis.size); ++n) {
      if (axis.size % n == 0) counts.push_back(n);
    }
  }
  std::sort(counts.rbegin(), counts.rend());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace

void group_nests(Program& program, std::span<const int> kept, std::span<const int> memory) {
  std::vector<int> nests_using(program.buffers.size(), 0);
  const auto each_operand = [](const LoopNest& nest, auto&& f) {
    for (const LoopNest::Operand& input : nest.inputs) f(input.buffer);
    f(nest.output.buffer);
  };
  for (const LoopNest& nest : program.nests) {
    each_operand(nest, [&](int b) { ++nests_using[static_cast<std::size_t>(b)]; });
  }
  for (std::size_t b = 0; b < std::min(memory.size(), program.buffers.size()); ++b) program.buffers[b].memory = memory[b];
  program.groups.clear();
  for (std::size_t first = 0; first < program.nests.size();) {
    Group best{first, 1, 1, {}};
    std::vector<int> compact;
    std::vector<std::size_t> members;
    for (std::int64_t blocks : block_counts(program.nests[first])) {
      const Grouping grouping(program, memory, first, blocks);
      if (grouping.group().count <= best.count) continue;
      best = grouping.group();
      compact = grouping.compact();
      members = grouping.members();
    }
    if (!members.empty()) bring_together(program.nests, members);
    std::map<int, int> uses_here;
    for (std::size_t i = 0; i < best.count; ++i) {
      each_operand(program.nests[first + i], [&](int b) { ++uses_here[b]; });
    }
    for (int b : compact) {
      const auto i = static_cast<std::size_t>(b);
      const bool is_kept = std::find(kept.begin(), kept.end(), b) != kept.end();
      program.buffers[i].is_local = i >= program.input_count && uses_here[b] == nests_using[i] && !is_kept;
    }
    first += best.count;
    program.groups.push_back(std::move(best));
  }
}

}  // namespace ein
