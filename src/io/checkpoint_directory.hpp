// Directories of checkpoints: their lock, and one that is added, whose manifest then lists it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ein/state_dict.hpp>

#include "io/file.hpp"
#include "io/lock_file.hpp"
#include "io/manifest.hpp"

namespace ein::io {

/// What errors of saving begin with.
inline constexpr const char* saving = "save_checkpoint";
inline constexpr const char* step_key = "ein.step";

/// The metadata of a checkpoint's files. Errors of kind `value` as save_checkpoint has.
Metadata metadata_of_checkpoint(std::int64_t step, Metadata metadata, std::int64_t keep_last);

/// Held while a directory's checkpoints are changed. Errors of kind `file`, also where another
/// process has it for longer than `patience`.
class DirectoryLock {
 public:
  DirectoryLock(const std::string& caller, const std::string& directory, Missing missing,
                std::chrono::milliseconds patience = usual_patience);

 private:
  const Place place_;
  const LockFile lock_;
};

/// Locks the directory, which it makes if it is missing, as long as it lives. Errors of kind
/// `file`.
class NewCheckpoint {
 public:
  NewCheckpoint(const std::string& directory, std::int64_t step, bool is_sharded);
  /// The manifest is as it was, unless the checkpoint was listed, or is of a parent that called
  /// fork().
  ~NewCheckpoint();
  NewCheckpoint(const NewCheckpoint&) = delete;
  NewCheckpoint& operator=(const NewCheckpoint&) = delete;

  /// Of the file that is to be written, or of the directory in which shards are.
  const std::string& path() const { return shards_ ? shards_->temporary() : path_; }
  /// Puts what was written at its place, lists it, and drops all but `keep_last`. `commit` renames
  /// the file, if it is one, and says what the manifest says of the files. Returns the path of the
  /// checkpoint.
  std::string list(const std::function<std::vector<ManifestFile>()>& commit,
                   std::int64_t keep_last);

 private:
  /// Until the checkpoint is listed, its name is among those that the next save removes. So a save
  /// that is killed leaves nothing for ever, and what no manifest has named is never removed.
  void announce();
  void take_back();

  std::string directory_, path_;
  DirectoryLock lock_;
  Manifest manifest_;
  ManifestEntry entry_;
  std::unique_ptr<NewDirectory> shards_;
  bool is_announced_ = false;
  OwningProcess owner_;
};

/// Removes locks, unfinished files and dropped checkpoints of saves that were killed. Errors of
/// kind `file`, which name `caller`.
void remove_what_killed_saves_left(const std::string& caller, const std::string& directory);

/// Removes the checkpoints that the manifest of a directory lists, and the manifest. Errors of kind
/// `file`, which name `caller`.
void remove_checkpoints(const std::string& caller, const std::string& directory);

/// A checkpoint of one file, in which each tensor is what `whole` makes of it when its turn comes.
/// Returns the file's path.
std::string save_in_one_file(const std::string& directory, std::int64_t step,
                             const StateDict& tensors, const Metadata& metadata,
                             std::int64_t keep_last,
                             const std::function<Tensor(const Tensor&)>& whole);

}  // namespace ein::io
