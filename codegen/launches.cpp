#include "codegen/launches.hpp"

#include <algorithm>
#include <iterator>

namespace ein::codegen {

Launches::Launches(const Program& program, Gpu& gpu) : gpu_(gpu) {
  std::vector<KernelSource> sources;
  for (const Program::Group& group : program.groups) {
    std::vector<KernelSource> kernels = emit(program, group, gpu.target());
    std::move(kernels.begin(), kernels.end(), std::back_inserter(sources));
  }
  const std::vector<std::shared_ptr<Module>> modules = gpu.load(sources);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    KernelSource& source = sources[i];
    Kernel kernel{
        .module = modules[i],
        .launch = {modules[i]->kernel(source.name, source.shared_bytes), std::to_array(source.grid),
                   std::to_array(source.block), source.shared_bytes},
        .buffers = std::move(source.buffers),
        .offsets = std::move(source.offsets),
        .checks_positions = source.checks_positions,
        .streams = std::move(source.streams)};
    kernels_.push_back(std::move(kernel));
    workspace_bytes_ = std::max(workspace_bytes_, source.workspace_bytes);
    checks_positions_ |= source.checks_positions;
  }
}

void Launches::run(std::span<std::byte* const> buffers, std::byte* workspace,
                   RandomOrigin random) const {
  std::vector<std::uint64_t> values;  // all parameters have 64 bits
  std::vector<void*> arguments;
  for (const Kernel& kernel : kernels_) {
    values.clear();
    for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
      const int buffer = kernel.buffers[i];
      const std::byte* const begin =
          buffer == workspace_buffer ? workspace : buffers[static_cast<std::size_t>(buffer)];
      values.push_back(reinterpret_cast<std::uint64_t>(begin) +
                       static_cast<std::uint64_t>(kernel.offsets[i]));
    }
    if (kernel.checks_positions) values.push_back(gpu_.fault());
    for (const KernelSource::Stream& stream : kernel.streams) {
      values.push_back(stream.of_run ? random.seed : stream.seed);
      values.push_back(stream.stream + (stream.of_run ? random.stream : 0));
    }
    arguments.clear();
    for (std::uint64_t& value : values) arguments.push_back(&value);
    gpu_.stream().launch(kernel.launch, arguments);
  }
}

}  // namespace ein::codegen
