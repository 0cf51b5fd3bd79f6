#include "passes/memory_timeline.hpp"

#include <algorithm>

#include "cost/step_bill.hpp"
#include "size/ask.hpp"

namespace ein {

MemoryTimeline memory_timeline(const Program& program, std::size_t block, std::size_t others) {
  MemoryTimeline timeline;
  timeline.arena = block;
  timeline.others = others;
  for (const Program::Group& group : program.groups)
    timeline.phases.push_back(program.nests[group.first].phase);
  const ProgramMemory memory = plan_memory(program);
  std::vector<Lifetime> lives;
  for (const ProgramMemory::Intermediate& value : memory.intermediate) lives.push_back(value.life);
  const Arena arena = plan_arena(lives);
  const StepValues values(program);
  for (std::size_t v = 0; v < lives.size(); ++v) {
    const std::size_t buffer = memory.intermediate[v].buffer;
    const BufferUse& use = values.use(buffer);
    if (!use.writer) continue;
    timeline.values.push_back({values.value(buffer),
                               use.is_activation ? MemoryTimeline::Role::activation
                               : use.is_gradient ? MemoryTimeline::Role::gradient
                                                 : MemoryTimeline::Role::passing,
                               static_cast<std::size_t>(std::int64_t{arena.offsets[v]}),
                               lives[v].first, lives[v].last});
  }
  std::stable_sort(timeline.values.begin(), timeline.values.end(),
                   [](const MemoryTimeline::Value& a, const MemoryTimeline::Value& b) {
                     return a.what.bytes > b.what.bytes;
                   });
  return timeline;
}

}  // namespace ein
