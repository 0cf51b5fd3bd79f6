// How the nests of a group depend on each other.
#include <algorithm>

#include "codegen/rows.hpp"
#include "size/ask.hpp"

namespace ein::codegen {

RowsGroup::RowsGroup(const Schedule& schedule, const Schedule::Step& step, int workspace) {
  for (const Schedule::Part& part : step.parts) {
    LoopNest nest = *part.whole;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (part.loops[a] >= 0)
        nest.axes[a].size = step.loops[static_cast<std::size_t>(part.loops[a])].size;
    }
    for (std::size_t o = 0; o < part.places.size(); ++o) {
      const Schedule::Place& place = part.places[o];
      const bool is_shared = schedule.is_scratch(place) && !schedule.scratch_of(place).of_thread;
      nest.operand(o).buffer =
          is_shared || place.buffer == workspace ? workspace_buffer : place.buffer;
      nest.operand(o).offset = place.offset;
    }
    is_local.push_back(!part.places.back().is_kept);
    nests.push_back(std::move(nest));
  }
  whole = &*std::max_element(nests.begin(), nests.end(), [](const auto& a, const auto& b) {
    return a.axes.size() < b.axes.size();
  });
  const std::vector<int>& loops = step.parts[static_cast<std::size_t>(whole - nests.data())].loops;
  for (std::size_t a = 0; a < loops.size(); ++a)
    (loops[a] >= 0 && !whole->axes[a].reduced ? row_axes : axes).push_back(a);
  // What one nest alone reads comes from outside, also where it is what it writes.
  for (std::size_t m = 0; m < nests.size() && nests.size() > 1; ++m)
    maker[nests[m].output.buffer] = m;
  for (std::size_t m = 0; m < nests.size(); ++m) {
    std::size_t own = 0;
    for (std::size_t i : reads_of(m)) {
      const auto made = maker.find(nests[m].inputs[i].buffer);
      if (made == maker.end()) continue;
      own = std::max(own, level[made->second] + (is_reduction(made->second) ? 1 : 0));
    }
    level.push_back(own);
    levels = std::max(levels, own);
  }
}

std::vector<std::size_t> RowsGroup::reads_of(std::size_t m) const {
  std::vector<std::size_t> reads = inputs_of(nests[m].body);
  for (std::size_t i : inputs_of(nests[m].epilogue)) {
    if (i > 0) reads.push_back(i);
  }
  std::sort(reads.begin(), reads.end());
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
  return reads;
}

const LoopNest::Operand* positions_of(const LoopNest& nest, const LoopNest::Operand& operand) {
  return operand.is_indirect()
             ? &nest.inputs[static_cast<std::size_t>(operand.indirection.positions)]
             : nullptr;
}

RowsPlan::RowsPlan(const RowsGroup& group, const Schedule::Step& step)
    : Schedule::Threads(*step.threads),
      rows(size_of_axes(*group.whole, group.row_axes)),
      elements(size_of_axes(*group.whole, group.axes)) {
  if (is_unrolled) {
    const Size most = ceil_div(elements, lanes * width);
    packs = most.is_number() ? most.word() : power_of_two_above(most);
  }
  if (step.loops.size() == group.row_axes.size()) return;
  const Schedule::Loop& loop = step.loops.back();
  pieces = loop.pieces();
  piece = loop.block * (elements / loop.size);
}

}  // namespace ein::codegen
