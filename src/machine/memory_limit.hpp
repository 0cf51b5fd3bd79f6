// How much memory this process may use, of which system.cpp asks the system.
#pragma once

#include <string>
#include <string_view>

namespace ein::system {

/// The most bytes that this process can have at once, and who says so, as "this machine has 16 GB":
/// memory and swap of the machine, or what a control group or RLIMIT_AS allows. Nothing that others
/// use is taken off, so more than that is never there.
struct MemoryLimit {
  double bytes;
  std::string_view set_by;
};
MemoryLimit memory_limit();

/// Bytes that are free now, or can be freed without taking them from another process, and free
/// swap; 0 where the system does not tell.
double available_memory();

/// What the control groups of this process, of version 1 or 2, allow it; infinity where they set no
/// limit. `root` stands for "/".
double control_group_memory(const std::string& root);

}  // namespace ein::system
