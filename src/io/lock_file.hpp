// Whose turn it is to write to a directory.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "io/file.hpp"

namespace ein::io {

/// How long a lock that another process has is tried for.
inline constexpr std::chrono::milliseconds no_patience{0}, usual_patience = std::chrono::minutes(1);

/// The lock (flock) of a file in a directory, and the file, as long as this lives. Only its owner
/// may open the file, and the group of a directory that the group may write to: who may only read
/// the directory can't take the lock. The file names its process. It vanishes with its process.
/// File systems without locks have to do without.
class LockFile {
 public:
  /// Errors are of kind `file` and name `caller` and the directory: the file cannot be opened, or
  /// `other`, as "another run", has the lock; then they tell what the file says of that process.
  LockFile(std::string_view caller, const std::string& path, const Place& directory,
           std::string name, std::string_view other, std::chrono::milliseconds patience);
  /// A child of fork() leaves it alone.
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

 private:
  LockFile(Begun, const Place& directory, std::string name)
      : directory_(directory), name_(std::move(name)) {}
  void open(std::string_view caller, const std::string& path);
  bool was_removed() const;
  std::string holder() const;

  const Place& directory_;
  std::string name_;
  Descriptor fd_;
  FileLock lock_;
  bool is_taken_ = false;
  OwningProcess owner_;
};

}  // namespace ein::io
