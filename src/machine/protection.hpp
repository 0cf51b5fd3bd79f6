// What protects a program from others on the same machine, as the operating system has it. It is
// defined in system.cpp.
#pragma once

namespace ein::system {

/// Whether this program has more rights than who started it (setuid, setgid, file capabilities).
bool has_more_rights();

/// Whether nobody can change the size of that file any more, so that no part of its mapping
/// vanishes. True of all files where the system has no seals.
bool keeps_its_size(int descriptor);

}  // namespace ein::system
