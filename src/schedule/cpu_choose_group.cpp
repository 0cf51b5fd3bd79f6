// The schedule of a group: one loop over its blocks. Nests that follow each other over the same
// rows are one part; every other is a part of its own, over its piece of the block.
#include <algorithm>
#include <map>

#include "nest/combine.hpp"
#include "schedule/cpu_choose.hpp"
#include "schedule/rows_of.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

using Place = Schedule::Place;

/// A nest's piece of one block.
struct Member {
  LoopNest nest;
  std::size_t axis;           // that was cut into blocks
  std::vector<Place> places;  // of each operand, the output last: where the piece begins
  std::vector<int> memory;    // of each operand: equal where it is the same
};

/// The rows of a block.
struct Block {
  Size rows = 0, length = 0;  // no length: nothing but single elements so far
  bool is_one_row = false;

  bool is_always(const Block& other) const {
    return always_equal(rows, other.rows) && always_equal(length, other.length) &&
           is_one_row == other.is_one_row;
  }
};

/// How a member is rows of a block.
struct MemberRows {
  std::vector<Place> places;
  bool is_scalar = false;
  bool is_down = false;  // combines the rows into one
};

MemberRows rows_with(const Member& member, std::optional<std::size_t> row, Size row_scale,
                     std::optional<std::size_t> along) {
  MemberRows result{.places = member.places};
  for (std::size_t o = 0; o < result.places.size(); ++o) {
    const LoopNest::Operand& of = member.nest.operand(o);
    result.places[o].row_step = row ? of.strides[*row] * row_scale : Size(0);
    result.places[o].step = along ? of.strides[*along] : Size(0);
  }
  return result;
}

/// Of a member that combines the rows of a block, by another axis than the one that was cut.
std::optional<MemberRows> rows_down(const Member& member, const Block& block,
                                    const Target& target) {
  const LoopNest& nest = member.nest;
  std::size_t row = 0;
  while (row < 3 && !nest.axes[row].reduced) ++row;
  if (row == 3 || row == member.axis || !nest.combine || !nest.epilogue.steps.empty())
    return std::nullopt;
  const std::size_t along = 3 - row - member.axis;
  if (!always_equal(block.rows, nest.axes[row].size) ||
      !always_equal(block.length, nest.axes[along].size))
    return std::nullopt;
  if (nest.output.dtype != nest.compute || !lies_along(nest, along, target)) return std::nullopt;
  MemberRows result = rows_with(member, row, 1, along);
  result.is_down = true;
  return result;
}

/// How the member is among nests with such rows, if it can be. Fills in the length.
std::optional<MemberRows> rows_of(const Member& member, Block& block, const Target& target) {
  const LoopNest& nest = member.nest;
  if (!is_for_rows(nest, target) || asks_index(nest.body) || asks_index(nest.epilogue))
    return std::nullopt;
  if (nest.axes.size() == 3 && is_one(nest.axes[member.axis].size))
    return rows_down(member, block, target);
  if (nest.axes.size() > 2) return std::nullopt;
  const Size size = nest.axes[member.axis].size;
  if (nest.axes.size() == 2) {
    const std::size_t along = 1 - member.axis;
    if (!lies_along(nest, along, target) || nest.axes[along].reduced != nest.combine.has_value())
      return std::nullopt;
    if (!ask_equal(block.length, 0) &&
        !(always_equal(block.rows, size) && always_equal(block.length, nest.axes[along].size)))
      return std::nullopt;
    if (nest.combine && nest.axes[along].size > target.longest_combined_row) return std::nullopt;
    block = {size, nest.axes[along].size, block.is_one_row};
    return rows_with(member, member.axis, 1, along);
  }
  if (nest.combine) return std::nullopt;
  if (!ask_equal(block.length, 0) && always_equal(size, block.rows)) {
    MemberRows result = rows_with(member, 0, 1, std::nullopt);
    result.is_scalar = true;
    return result;
  }
  if ((!ask_equal(block.length, 0) && !always_equal(size, block.rows * block.length)) ||
      !lies_along(nest, 0, target))
    return std::nullopt;
  return rows_with(member, 0, block.length, 0);
}

/// Whether what one writes another reads or writes elsewhere in the row. Buffers that share memory
/// begin at places of their own.
bool is_apart(const Place& a, const Place& b) {
  return a.buffer != b.buffer || a.dtype != b.dtype || !always_equal(a.step, b.step) ||
         !always_equal(a.row_step, b.row_step) || !always_equal(a.offset, b.offset);
}

/// The rows of a block of all members: as the first that has two axes says; else a block is one
/// row.
Block block_of(std::span<const Member> members) {
  for (const Member& member : members) {
    const LoopNest& nest = member.nest;
    if (nest.axes.size() == 2)
      return {nest.axes[member.axis].size, nest.axes[1 - member.axis].size};
  }
  return {1, members[0].nest.axes[members[0].axis].size, true};
}

/// How many of the first members can share rows of such blocks.
std::size_t count_with(std::span<const Member> members, Block block, const Target& target) {
  struct Use {
    Place place;
    int memory;
    bool is_written;
  };
  std::vector<Use> uses;
  std::size_t count = 0;
  for (const Member& member : members) {
    const auto rows = rows_of(member, block, target);
    if (!rows || member.nest.compute != members[0].nest.compute) break;
    const std::size_t inputs = member.nest.inputs.size();
    bool fits = uses.size() + inputs + 1 <= most_places;
    for (std::size_t o = 0; o <= inputs; ++o) {
      const Use use{rows->places[o], member.memory[o], o == inputs};
      for (const Use& other : uses) {
        if (other.memory == use.memory && (other.is_written || use.is_written))
          fits &= !is_apart(other.place, use.place);
      }
      uses.push_back(use);
    }
    if (!fits) break;
    ++count;
  }
  return count;
}

std::size_t count_together(std::span<const Member> members, const Target& target) {
  // A later member may say what the rows are; those before it must agree.
  for (std::size_t end = members.size(); end > 0; --end) {
    const Block block = block_of(members.first(end));
    const std::size_t count = count_with(members.first(end), block, target);
    if (count == end) return count;
    // rows_part takes the block of those alone.
    if (count > 0 && block_of(members.first(count)).is_always(block)) return count;
  }
  return 0;
}

class GroupChooser {
 public:
  GroupChooser(const Program& program, const Program::Group& group, const Target& target)
      : program_(program), group_(group), blocks_(*group.blocks()), target_(target) {}

  Schedule run() {
    schedule_.buffers = program_.buffers.size();
    for (std::size_t i = 0; i < group_.count; ++i) {
      members_.push_back(member(i));
      for (int buffer : buffers_of(members_.back().nest)) ++uses_[buffer];
    }
    Schedule::Step step;
    step.loops = {{"block", blocks_.count, blocks_.at_once}};
    for (std::size_t i = 0; i < members_.size();) {
      const auto left = std::span<const Member>(members_).subspan(i);
      const std::size_t count = count_together(left, target_);
      step.parts.push_back(count > 1 ? rows_part(left.first(count)) : whole_part(members_[i]));
      i += std::max<std::size_t>(1, count);
    }
    schedule_.steps = {std::move(step)};
    return std::move(schedule_);
  }

 private:
  static std::vector<int> buffers_of(const LoopNest& nest) {
    std::vector<int> buffers;
    for (std::size_t o = 0; o <= nest.inputs.size(); ++o) buffers.push_back(nest.operand(o).buffer);
    return buffers;
  }

  Member member(std::size_t i) {
    Member member{program_.nests[group_.first + i], blocks_.axes[i], {}, {}};
    Size& length = member.nest.axes[member.axis].size;
    length = length / blocks_.count * blocks_.at_once;
    for (std::size_t o = 0; o <= member.nest.inputs.size(); ++o) {
      const LoopNest::Operand& of = member.nest.operand(o);
      const Program::Buffer& buffer = program_.buffers[static_cast<std::size_t>(of.buffer)];
      Place place{.buffer = of.buffer,
                  .dtype = of.dtype,
                  .offset = of.offset,
                  .strides = {of.strides[member.axis] * length}};
      if (buffer.is_local) {
        const auto [found, is_new] = scratch_of_.try_emplace(
            of.buffer, static_cast<int>(schedule_.buffers + schedule_.scratch.size()));
        if (is_new)
          schedule_.scratch.push_back(
              {buffer.elements / blocks_.count * blocks_.at_once, buffer.dtype, true});
        place.buffer = found->second;
        place.strides = {0};
      }
      member.places.push_back(std::move(place));
      member.memory.push_back(buffer.memory < 0 ? of.buffer : buffer.memory);
    }
    return member;
  }

  Schedule::Part whole_part(const Member& member) const {
    Schedule::Part part;
    part.places = member.places;
    part.whole = member.nest;
    if (is_one(blocks_.at_once)) {
      simplify(*part.whole);  // the axis that was cut may be of one point now
    } else {
      part.loops.assign(part.whole->axes.size(), -1);
      part.loops[member.axis] = 0;
    }
    return part;
  }

  Schedule::Part rows_part(std::span<const Member> members) const {
    std::map<int, int> uses_here;
    for (const Member& member : members) {
      for (int buffer : buffers_of(member.nest)) ++uses_here[buffer];
    }
    Block block = block_of(members);
    Schedule::Part part;
    std::vector<int> memory;  // of each place
    for (const Member& member : members) {
      const LoopNest& nest = member.nest;
      MemberRows rows = *rows_of(member, block, target_);
      Schedule::RowNest row_nest{.body = nest.body,
                                 .combine = nest.combine,
                                 .epilogue = nest.epilogue,
                                 .is_scalar = rows.is_scalar};
      if (rows.is_down) row_nest.over = Schedule::Over::rows;
      const std::vector<int> buffers = buffers_of(nest);
      for (std::size_t o = 0; o < buffers.size(); ++o) {
        Place place = rows.places[o];
        place.is_kept =
            !schedule_.is_scratch(place) || uses_here[buffers[o]] != uses_.at(buffers[o]);
        if (!place.is_kept) place.row_step = 0;  // each row takes the last one's memory
        std::size_t p = 0;
        while (p < memory.size() &&
               (memory[p] != member.memory[o] || is_apart(part.places[p], place)))
          ++p;
        if (p == memory.size()) {
          memory.push_back(member.memory[o]);
          part.places.push_back(std::move(place));
        }
        if (o < nest.inputs.size())
          row_nest.inputs.push_back(p);
        else
          row_nest.output = p;
      }
      part.rows.nests.push_back(std::move(row_nest));
    }
    part.rows.rows = {block.rows};
    part.rows.length = {block.length};
    part.rows.compute = members[0].nest.compute;
    // The last block may have fewer rows, or elements of its only one.
    if (!is_one(blocks_.at_once)) (block.is_one_row ? part.rows.length : part.rows.rows).loop = 0;
    return part;
  }

  const Program& program_;
  const Program::Group& group_;
  const Program::Group::Blocks& blocks_;
  const Target& target_;
  Schedule schedule_;
  std::vector<Member> members_;
  std::map<int, int> uses_;        // of each buffer, by the operands of all members
  std::map<int, int> scratch_of_;  // of local buffers
};

}  // namespace

Schedule choose(const Program& program, const Program::Group& group, const Target& target) {
  if (group.attention()) return choose(program, *group.attention(), target);
  if (group.count == 1) return choose(program.nests[group.first], target);
  return GroupChooser(program, group, target).run();
}

}  // namespace ein
