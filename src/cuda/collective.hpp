// Collectives between the kernels of a program.
#pragma once

#include "backend/backend.hpp"
#include "codegen/emit.hpp"

namespace ein::gpu {

class Gpu;

/// Starts a collective of numbers, in its turn on the GPU's stream: by NCCL between processes;
/// where one process stands for all, through the host, which waits for it.
void start_collective(const codegen::CollectiveSource& source, const engine::Run& run, Gpu& gpu);

}  // namespace ein::gpu
