// Memory: how many bytes ein holds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ein {

/// Where tensors live.
enum class Device : std::uint8_t { cpu };

/// Bytes of tensors and of workspaces that are alive, as they were asked for (not rounded up). Memory that
/// a tensor only wraps does not count.
std::size_t memory_allocated(Device device = Device::cpu);
/// The most there were at one time since the program began, or since reset_max_memory_allocated().
std::size_t max_memory_allocated(Device device = Device::cpu);
void reset_max_memory_allocated(Device device = Device::cpu);

}  // namespace ein
