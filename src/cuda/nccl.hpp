// nccl: processes exchange what lies on their GPUs, by NCCL, as work of the stream of the kernels.
#pragma once

#include "mesh/transport.hpp"

namespace ein::gpu {

class Gpu;

/// The transport between the GPUs of the processes that `host` is between, which tell each other
/// through it how to meet; made once. Addresses are those of the GPU. A collective takes its turn
/// in the stream, and a Ticket is done at once: what comes later in the stream finds the result.
///
/// NCCL chooses the order in which it combines, and rounds narrow floats as it goes. Where one
/// process of a group has no NCCL, all get an Error of kind `peer`.
mesh::Transport& nccl_beside(mesh::Transport& host, Gpu& gpu);

}  // namespace ein::gpu
