// Cubin: compiled kernels, and what each of them takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ein::gpu {

/// Kernels compiled for one architecture.
struct Cubin {
  std::string image;  ///< the ELF file that the driver loads
  std::string log;    ///< what the compiler said, `ptxas -v` lines included
};

/// What a kernel takes of a streaming multiprocessor.
struct KernelResources {
  /// What did not fit in registers, in bytes of instructions' operands.
  struct Spills {
    std::int64_t stored = 0, loaded = 0;
  };
  std::string name;
  int sm = 0;                        ///< 90 for sm_90a
  int registers = 0;                 ///< of each thread
  std::int64_t shared_bytes = 0;     ///< of each block, without what a launch adds
  std::int64_t stack_bytes = 0;      ///< local memory of each thread: arrays and spills
  std::int64_t parameter_bytes = 0;  ///< of all parameters
  std::int64_t code_bytes = 0;
  int max_threads = 0;           ///< in a block, by __launch_bounds__; 0: not said
  std::optional<Spills> spills;  ///< nothing where the log does not tell
};

/// The kernels of a cubin, by name. Reads the ELF sections (System V ABI, "Object Files") and the
/// attributes that ptxas leaves in .nv.info, as `cuobjdump -elf` names them; spills come from the
/// log. An Error of kind `file` for an image that is no cubin or is damaged: whatever its bytes,
/// nothing outside of it is read.
std::vector<KernelResources> kernels_of(const Cubin& cubin);

}  // namespace ein::gpu
