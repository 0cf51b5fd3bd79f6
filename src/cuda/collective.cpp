#include "cuda/collective.hpp"

#include <stdexcept>
#include <vector>

#include "cuda/gpu.hpp"
#include "cuda/nccl.hpp"
#include "mesh/process.hpp"
#include "size/ask.hpp"

namespace ein::gpu {
namespace {

std::byte* address_of(const codegen::CollectiveSource::Place& place, const engine::Run& run) {
  std::byte* const buffer = place.buffer == codegen::workspace_buffer
                                ? run.workspace
                                : run.buffers[static_cast<std::size_t>(place.buffer)];
  return buffer + place.offset;
}

/// By copies of the operand and the result that the host has.
void start_on_host(const codegen::CollectiveSource& source, mesh::Group& group, std::byte* from,
                   std::byte* to, Gpu& gpu) {
  const auto block = static_cast<std::size_t>(source.count) * size_of(source.dtype);
  const auto blocks = [&](Collective one, Collective other) {
    return source.collective == one || source.collective == other
               ? static_cast<std::size_t>(group.size())
               : 1;
  };
  std::vector<std::byte> operand(block *
                                 blocks(Collective::reduce_scatter, Collective::all_to_all)),
      result(block * blocks(Collective::all_gather, Collective::all_to_all));
  gpu.copy_out(operand.data(), reinterpret_cast<std::uint64_t>(from), operand.size());
  group
      .start(source.collective, operand.data(), result.data(), source.count, source.dtype,
             mesh::for_collective(source.combine))
      .wait();
  gpu.copy_in(reinterpret_cast<std::uint64_t>(to), result.data(), result.size());
}

}  // namespace

void start_collective(const codegen::CollectiveSource& source, const engine::Run& run, Gpu& gpu) {
  if (!run.process) throw std::logic_error("a collective of a program that runs on no mesh");
  mesh::Transport& host = run.process->transport();
  std::byte *const from = address_of(source.from, run), *const to = address_of(source.to, run);
  if (host.name() == "loop")
    return start_on_host(source, run.process->group(source.mesh_axes), from, to, gpu);
  // Done in its turn on the stream.
  run.process->group(source.mesh_axes, nccl_beside(host, gpu))
      .start(source.collective, from, to, source.count, source.dtype,
             mesh::for_collective(source.combine))
      .wait();
}

}  // namespace ein::gpu
