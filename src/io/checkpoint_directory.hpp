// Directories of checkpoints: their lock, and one that is added, whose manifest then lists it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ein/state_dict.hpp>

#include "io/file.hpp"
#include "io/manifest.hpp"

namespace ein::io {

/// What errors of saving begin with.
inline constexpr const char* saving = "save_checkpoint";
inline constexpr const char* step_key = "ein.step";

/// The metadata of a checkpoint's files. Errors of kind `value` as save_checkpoint has.
Metadata metadata_of_checkpoint(std::int64_t step, Metadata metadata, std::int64_t keep_last);

/// Held while a directory's files are written (alone) or read (together). It vanishes with its
/// process.
class DirectoryLock {
 public:
  DirectoryLock(const std::string& caller, const std::string& directory, bool alone);

 private:
  Descriptor fd_;
};

/// Locks the directory, which it makes if it is missing, as long as it lives. Errors of kind
/// `file`.
class NewCheckpoint {
 public:
  NewCheckpoint(const std::string& directory, std::int64_t step, bool is_sharded);

  /// Of the file that is to be written, or of the directory in which shards are.
  const std::string& path() const { return shards_ ? shards_->temporary() : path_; }
  /// Lists what was written and drops all but `keep_last`. Returns the path of the checkpoint.
  std::string list(std::vector<ManifestFile> files, std::int64_t keep_last);

 private:
  std::string directory_, path_;
  DirectoryLock lock_;
  Manifest manifest_;
  ManifestEntry entry_;
  std::unique_ptr<NewDirectory> shards_;
};

/// A checkpoint of one file, in which each tensor is what `whole` makes of it when its turn comes.
/// Returns the file's path.
std::string save_in_one_file(const std::string& directory, std::int64_t step,
                             const StateDict& tensors, const Metadata& metadata,
                             std::int64_t keep_last,
                             const std::function<Tensor(const Tensor&)>& whole);

}  // namespace ein::io
