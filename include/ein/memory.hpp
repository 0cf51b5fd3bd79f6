// Memory: how many bytes ein holds.
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

}  // namespace ein
