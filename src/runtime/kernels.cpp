#include "runtime/kernels.hpp"

#include <algorithm>
#include <string>

#include <ein/error.hpp>
#include "cpu/processor.hpp"
#include "cpu/row_code.hpp"
#include "cuda/launches.hpp"
#include "passes/find_attention.hpp"
#include "passes/group_many.hpp"
#include "passes/group_rows.hpp"
#include "schedule/group_nests.hpp"

namespace ein::engine {

void group(Program& program, Device device, std::span<const int> kept,
           std::span<const int> memory) {
  if (device == cpu) {
    host::require_processor();
    const Target& target = host::RowCode::target();
    find_attention(program, kept, memory,
                   [&](const Attention& attention) { return is_for_tiles(attention, target); });
    return group_nests(program, target, kept, memory);
  }
  for (std::size_t b = 0; b < std::min(memory.size(), program.buffers.size()); ++b)
    program.buffers[b].memory = memory[b];
  find_attention(program, kept, memory);
  group_rows(program, kept, memory);
  group_many(program, kept, memory);
}

Kernels::Kernels(const Program& program, Device device) {
  if (device.kind() == Device::Kind::cuda) {
    on_gpu_ = std::make_unique<codegen::Launches>(program, codegen::Gpu::of_system(device.index()));
    return;
  }
  host::require_processor();
  for (const Program::Group& group : program.groups)
    on_host_.push_back(host::make_kernel(program, group));
}

Kernels::~Kernels() = default;

std::size_t Kernels::workspace_bytes(int threads) const {
  if (on_gpu_) return on_gpu_->workspace_bytes();
  std::size_t most = 0;
  for (const auto& kernel : on_host_) most = std::max(most, kernel->workspace_bytes(threads));
  return most;
}

void Kernels::run(const host::Run& run) const {
  if (on_gpu_) return on_gpu_->run({run.buffers, run.workspace, run.random});
  for (const auto& kernel : on_host_) kernel->run(run);
}

void Kernels::require_success(std::string_view call) const {
  if (!on_gpu_ || !on_gpu_->checks_positions()) return;
  if (const auto fault = on_gpu_->gpu().take_fault()) {
    throw Error(ErrorKind::value, std::string(call) + ": position " +
                                      std::to_string(fault->position) +
                                      " is outside an axis of size " + std::to_string(fault->size));
  }
}

}  // namespace ein::engine
