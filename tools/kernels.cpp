#include "kernels.hpp"

#include <string_view>
#include <utility>

#include "call.hpp"
#include "codegen/vocabulary.hpp"
#include "compile/passes.hpp"
#include "io/file.hpp"
#include "io/number.hpp"

namespace ein::command {

Program program_of(const Graph& graph) {
  return engine::lowered(graph, engine::job_of(graph)).program;
}

GpuTarget target_of(const std::string& arch) {
  std::string_view digits = arch;
  const bool has_prefix = digits.starts_with("sm_");
  if (has_prefix) digits.remove_prefix(3);
  GpuTarget target;
  target.accelerated = digits.ends_with('a');
  if (target.accelerated) digits.remove_suffix(1);
  const auto sm = io::number_of<int>(digits);
  if (!has_prefix || !sm)
    throw UsageError("--arch: '" + arch + "' is no architecture such as sm_80, sm_90a or sm_100a");
  target.sm = *sm;
  if (target.sm < 80) throw UsageError("--arch: kernels are made for sm_80 and newer, not " + arch);
  return target;
}

Kernels kernels_of(const Program& program, const GpuTarget& target) {
  Program grouped = program;
  engine::group(grouped, {.device = cuda});
  std::vector<codegen::KernelSource> sources;
  for (std::size_t i = 0; i < grouped.groups.size(); ++i) {
    for (codegen::KernelSource& kernel :
         codegen::emit(grouped, grouped.groups[i], target, "_" + std::to_string(i)))
      sources.push_back(std::move(kernel));
  }
  return in_one_unit(std::move(sources));
}

Kernels in_one_unit(std::vector<codegen::KernelSource> sources) {
  Kernels kernels;
  kernels.sources = std::move(sources);
  for (const codegen::KernelSource& kernel : kernels.sources) {
    if (!kernels.text.empty()) kernels.text += '\n';
    kernels.text += kernel.text.substr(kernel.kernel_begin);
  }
  kernels.text = codegen::vocabulary_for(kernels.text) + kernels.text;
  return kernels;
}

namespace {

std::string extents(const std::array<unsigned, 3>& size) {
  return std::to_string(size[0]) + ", " + std::to_string(size[1]) + ", " + std::to_string(size[2]);
}

}  // namespace

std::string launch_of(const codegen::KernelSource& kernel) {
  std::string text =
      "// grid (" + extents(kernel.grid()) + "), block (" + extents(kernel.block) + ")";
  if (kernel.shared_bytes > 0)
    text += ", " + std::to_string(kernel.shared_bytes) + " bytes of shared memory";
  text += "; on";
  for (const codegen::TensorMap& map : kernel.maps)
    text += " a map of buffer " + std::to_string(map.buffer) + ",";
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
    const int buffer = kernel.buffers[i];
    text += i > 0 ? ", " : " ";
    text += buffer == codegen::workspace_buffer ? "workspace" : "buffer " + std::to_string(buffer);
    if (kernel.offsets[i] > 0) text += " + " + std::to_string(kernel.offsets[i]) + " bytes";
  }
  if (kernel.checks_positions) text += ", a fault";
  for (std::size_t i = 0; i < kernel.streams.size(); ++i) text += ", a seed and a stream";
  for (std::size_t i = 0; i < kernel.constants.size(); ++i) text += ", a number";
  return text + "\n";
}

void save(const std::string& path, const std::string& content) {
  io::ReplacementFile file("emit", path);
  file.write(content.data(), content.size());
  file.commit();
}

namespace {
std::vector<bool> columns(bool with_launches) {
  std::vector<bool> right(with_launches ? 8 : 7, true);
  right[0] = false;
  return right;
}
}  // namespace

ResourceTable::ResourceTable(bool with_launches)
    : with_launches_(with_launches), table_(columns(with_launches)) {
  std::vector<std::string> names{"kernel",  "registers", "shared", "stack",
                                 "spilled", "threads",   "code"};
  if (with_launches) names.push_back("launches");
  table_.add(std::move(names));
}

void ResourceTable::add(const gpu::Cubin& cubin, std::span<const codegen::KernelSource> launches) {
  for (const gpu::KernelResources& kernel : gpu::kernels_of(cubin)) {
    std::int64_t shared = kernel.shared_bytes, threads = kernel.max_threads;
    std::size_t count = 0;
    for (const codegen::KernelSource& launch : launches) {
      if (launch.name != kernel.name || count++ > 0) continue;
      shared += static_cast<std::int64_t>(launch.shared_bytes);
      threads = std::int64_t{launch.block[0]} * launch.block[1] * launch.block[2];
    }
    std::vector<std::string> row{
        kernel.name,
        std::to_string(kernel.registers),
        grouped(shared),
        grouped(kernel.stack_bytes),
        kernel.spills ? grouped(kernel.spills->stored + kernel.spills->loaded) : "unknown",
        grouped(threads),
        grouped(kernel.code_bytes)};
    if (with_launches_) row.push_back(std::to_string(count));
    table_.add(std::move(row));
    ++kernels_;
  }
}

}  // namespace ein::command
