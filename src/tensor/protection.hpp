// What protects a program from others on the same machine, as the operating system has it. It is
// defined in system.cpp.
#pragma once

namespace ein::system {

/// Whether this program has more rights than who started it (setuid, setgid, file capabilities).
bool has_more_rights();

}  // namespace ein::system
