// The directory of a training run: whose it is, and whether it has a run already.
#pragma once

#include <string>

#include "io/file.hpp"

namespace ein::training {

/// A directory that one run at a time has, which is locked (flock) as long as this lives: by a file
/// in it, as savers of checkpoints lock the directory itself. The file names the process.
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
  void take_lock();

  std::string path_, lock_path_;
  bool was_made_ = false;
  io::Descriptor fd_;
  io::FileLock lock_;
  OwningProcess owner_;
};

}  // namespace ein::training
