#include "compile/compiled.hpp"

#include <algorithm>
#include <utility>

#include "cost/scope.hpp"
#include "graph/after_pass.hpp"
#include "graph/at_sizes.hpp"
#include "nest/attention.hpp"
#include "size/ask.hpp"
#include "size/size_arithmetic.hpp"
#include "tensor/heap_bytes.hpp"

namespace ein::engine {
namespace {

/// Of an arena, as a GPU's allocator aligns: the workspace follows it.
constexpr std::int64_t arena_alignment = 256;

}  // namespace

Compiled::Compiled(Graph graph, const Job& job, SizeValues lengths, SizeGuards known)
    : device_(job.device), lengths_(std::move(lengths)) {
  const SizeScope scope(lengths_, SizeScope::Reading::is_guard, std::move(known));
  made_ = lowered(std::move(graph), job);
  group(made_.program, job);
  memory_ = plan_memory(made_.program);
  guards_ = scope.guards();
  if (job.of == Job::Of::call) made_.graph = {};
  kept_.add(sizeof *this + heap_bytes_of_all(made_.graph, made_.program));
}

Compiled::Compiled(Program program, Device device) : device_(device) {
  made_.program = std::move(program);
  group(made_.program, {.device = device});
  memory_ = plan_memory(made_.program);
  kept_.add(sizeof *this + heap_bytes(made_.program));
}

void Compiled::load() {
  const SizeScope scope(lengths_, SizeScope::Reading::is_guard, guards_);
  kernels_ = backend_of(device_).plan(made_.program);
  guards_ = scope.guards();
}

std::string Compiled::text() const {
  // It was made for lengths with the same answers.
  const SizeScope scope(lengths_, SizeScope::Reading::is_guard, guards_);
  const std::string guards = guards_.to_string();
  return (guards.empty() ? "" : "for lengths where " + guards + "\n") + to_string(graph()) + "\n" +
         to_string(program()) + "\n" + backend_of(device_).describe(program());
}

CostOfLengths Compiled::cost_formula() const {
  const SizeScope scope(lengths_, SizeScope::Reading::is_guard, guards_);
  return cost_of_lengths(program());
}

Size Compiled::arena_bytes() const {
  const SizeScope scope(lengths_, SizeScope::Reading::is_guard, guards_);
  std::vector<Lifetime> lives;
  for (const ProgramMemory::Intermediate& value : memory_.intermediate) lives.push_back(value.life);
  return round_up(plan_arena(lives).bytes, arena_alignment);
}

Bound::Bound(std::shared_ptr<const Compiled> compiled, const SizeValues& lengths)
    : compiled_(std::move(compiled)), lengths_(lengths) {
  const Program& program = compiled_->program();
  const ProgramMemory& memory = compiled_->memory();
  SizesAt sizes(lengths);
  const auto bytes = [&](Size size) { return static_cast<std::size_t>(sizes(size)); };
  if (verifies_passes()) verify(at_sizes(program, sizes));
  // All of them have to be numbers, whether they are allocated or not.
  for (const Program::Buffer& buffer : program.buffers) sizes(buffer.bytes());
  for (const int buffer : memory.results) {
    const auto b = static_cast<std::size_t>(buffer);
    result_buffers_.push_back({b, bytes(program.buffers[b].bytes())});
  }
  result_bytes_ = bytes(memory.result_bytes);
  const Arena arena = arena_at(memory, sizes);
  arena_bytes_ = bytes(round_up(arena.bytes, arena_alignment));
  for (std::size_t i = 0; i < memory.intermediate.size(); ++i)
    arena_offsets_.emplace_back(memory.intermediate[i].buffer, bytes(arena.offsets[i]));
  for (const Program::Result& result : program.results) {
    const auto is_it = [&](const ResultBuffer& own) {
      return own.buffer == static_cast<std::size_t>(result.buffer);
    };
    const auto own = std::find_if(result_buffers_.begin(), result_buffers_.end(), is_it);
    results_.push_back(
        {at_sizes(result, sizes), static_cast<std::size_t>(own - result_buffers_.begin())});
  }
  kernels_ = compiled_->kernels_at(sizes);
  kept_.add(sizeof *this);
}

Program Bound::program() const {
  SizesAt sizes(lengths_);
  return at_sizes(compiled_->program(), sizes);
}

void Bound::run(std::span<std::byte*> addresses, std::byte* block, RandomOrigin random, int threads,
                const mesh::Process* process) const {
  for (const auto& [buffer, offset] : arena_offsets_) addresses[buffer] = block + offset;
  kernels_->run({addresses, block ? block + arena_bytes_ : nullptr, random, threads, process});
}

}  // namespace ein::engine
