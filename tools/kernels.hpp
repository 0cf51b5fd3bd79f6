// The loops and the CUDA kernels of a call on the command line.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/emit.hpp"
#include "cuda/cubin.hpp"
#include "graph/call.hpp"
#include "nest/nest.hpp"
#include "report.hpp"

namespace ein::command {

/// The loops that run on operands without gaps, contractions in their best order. Maps are part of
/// the operation that reads them.
Program program_of(const Graph& graph);

/// What "sm_90a" says. A UsageError for what is no architecture that kernels are made for.
GpuTarget target_of(const std::string& arch);

/// The kernels of a program, in groups as on a GPU, and the one translation unit that they make.
struct Kernels {
  std::vector<codegen::KernelSource> sources;
  std::string text;
};

Kernels kernels_of(const Program& program, const GpuTarget& target);
Kernels in_one_unit(std::vector<codegen::KernelSource> sources);

/// How a kernel is launched, as a comment.
std::string launch_of(const codegen::KernelSource& kernel);

/// Writes a file of the command's, whole or not at all.
void save(const std::string& path, const std::string& content);

/// What kernels take of a GPU, a row for each.
class ResourceTable {
 public:
  static constexpr const char* units =
      "registers and stack are of a thread, shared memory of a block; sizes in bytes";

  /// With `launches`, how often each is launched.
  explicit ResourceTable(bool with_launches = false);
  /// The kernels of a cubin, of which `launches` has some.
  void add(const gpu::Cubin& cubin, std::span<const codegen::KernelSource> launches);
  std::string text() const { return table_.text(); }
  std::size_t kernels() const { return kernels_; }

 private:
  bool with_launches_;
  Table table_;
  std::size_t kernels_ = 0;
};

}  // namespace ein::command
