// Memory: how many bytes ein holds, of tensors and of plans.
#pragma once

#include <cstddef>

#include <ein/device.hpp>

namespace ein {

/// Bytes of tensors and of workspaces that are alive, as they were asked for (not rounded up).
/// Memory that a tensor only wraps does not count.
std::size_t memory_allocated(Device device = cpu);
/// The most there were at one time since the program began, or since reset_max_memory_allocated().
std::size_t max_memory_allocated(Device device = cpu);
void reset_max_memory_allocated(Device device = cpu);

/// Bytes that are held from the system or the driver: those of memory_allocated(), rounded up, and
/// those kept to be used again.
std::size_t memory_reserved(Device device = cpu);
/// Gives back what is kept to be used again. A GPU does so itself before it runs out of memory.
void release_memory(Device device = cpu);

/// Bytes that plans hold, about: what ein keeps of calls and of compiled functions so that the next
/// call like them is not planned again. Their graphs, programs, kernels and machine code count, by
/// the sizes of their parts; tensors do not. It is memory of the process, for all devices.
std::size_t plan_bytes();
/// The limit of plan_bytes(): 256 MiB unless it was set. Where a new plan exceeds it, those that
/// were used longest ago are dropped; their next call makes them again. A plan in use, by a call
/// that runs or a tape, is never dropped, nor is the latest program of a compiled function.
std::size_t plan_limit();
/// Sets it for the process, and drops plans that exceed it. 0 keeps nothing that is not in use.
void set_plan_limit(std::size_t bytes);
/// Drops all plans that are not in use.
void release_plans();

}  // namespace ein
