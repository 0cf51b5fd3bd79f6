// The directory of a training run: whose it is, and whether it has a run already.
#pragma once

#include <optional>
#include <string>

#include "io/lock_file.hpp"

namespace ein::training {

/// A directory that one run at a time has, which is locked as long as this lives, by a file in it
/// beside that of savers of checkpoints.
class RunDirectory {
 public:
  /// Makes the directory if it is missing. An Error of kind `file` where that fails, where another
  /// run has it, or where the log or the picture is something other than a file. File systems
  /// without locks have to do without.
  explicit RunDirectory(const std::string& path);
  /// Removes a directory that was made here and is empty. A child of fork() leaves it alone.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  /// An Error of kind `value` where it has a run.
  void require_unused() const;
  /// Removes the run: checkpoints that the manifest lists, log and picture.
  void clear() const;

 private:
  std::string path_;
  const io::Place place_;
  std::optional<io::LockFile> lock_;
  OwningProcess owner_;
};

}  // namespace ein::training
