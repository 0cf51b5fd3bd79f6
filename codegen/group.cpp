// Groups of nests as kernels.
#include <iterator>

#include "codegen/attention.hpp"
#include "codegen/writer.hpp"
#include "graph/after_pass.hpp"
#include "schedule/gpu_choose.hpp"
#include "size/ask.hpp"

namespace ein::codegen {

namespace {

std::vector<KernelSource> emit_group(const Program& program, const Program::Group& group,
                                     const GpuTarget& target, std::string_view suffix) {
  const Context context{target, std::string(suffix)};
  if (group.repeated()) return emit_many(program, group, context);
  if (group.attention()) return emit_attention(*group.attention(), context);
  if (group.rows())
    return emit_rows(after_pass("schedule", choose(program, group, target)), context);
  std::vector<KernelSource> kernels;
  for (std::size_t n = group.first; n < group.first + group.count; ++n) {
    std::vector<KernelSource> of_nest = emit(program.nests[n], target, suffix);
    std::move(of_nest.begin(), of_nest.end(), std::back_inserter(kernels));
  }
  return kernels;
}

}  // namespace

std::vector<int> memory_of(const Program& program) {
  std::vector<int> memory;
  for (const Program::Buffer& buffer : program.buffers) memory.push_back(buffer.memory);
  return memory;
}

std::vector<KernelSource> emit(const Program& program, const Program::Group& group,
                               const GpuTarget& target, std::string_view suffix) {
  std::vector<KernelSource> kernels = emit_group(program, group, target, suffix);
  for (KernelSource& kernel : kernels) {
    unrestrict_shared(kernel, memory_of(program));
    if (prints_pass("kernel")) print_pass("kernel", kernel.text);
  }
  return kernels;
}

}  // namespace ein::codegen
