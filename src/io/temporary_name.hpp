// Names of temporary files, which say where they were made: a file system may be another machine's,
// too.
#pragma once

#include <string>
#include <string_view>

namespace ein::io {

/// This machine since it was started: a name of letters, digits, '.' and '_', and what tells its
/// starts apart.
struct Boot {
  std::string host, id;
  friend bool operator==(const Boot&, const Boot&) = default;
};
Boot this_boot();

/// ".ein-HOST-BOOT-PID-NUMBER.tmp", one that this process has not had yet.
std::string temporary_name();

/// Whether a file of this name is temporary, and who made it had its lock on this machine, as
/// `here` says: since it was started, or before, so that nobody has it any more. Of another machine
/// nobody knows here.
bool is_temporary_of(const Boot& here, std::string_view name);

}  // namespace ein::io
