#include "io/checkpoint_directory.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <ein/error.hpp>

namespace ein::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = ".ein-checkpoints.lock";

/// Removes what it can of the checkpoints that are no longer listed, and forgets them.
void remove_dropped(const std::string& directory, Manifest& manifest) {
  std::erase_if(manifest.dropped, [&](const std::string& name) {
    std::error_code error;
    if (!manifest.find(name)) fs::remove_all(join(directory, name), error);
    return !error;
  });
}

/// Whether something is there under a name that a new checkpoint could have: another checkpoint, or
/// a file of somebody else.
bool is_taken(const std::string& directory, const Manifest& manifest, const std::string& name) {
  std::error_code error;
  return manifest.find(name) || fs::exists(fs::symlink_status(join(directory, name), error));
}

/// One that says nothing is no file.
void write_manifest(const std::string& caller, const std::string& directory,
                    const Manifest& manifest) {
  const std::string path = join(directory, manifest_name);
  if (manifest != Manifest()) return replace_file(caller, path, to_json(manifest));
  std::error_code error;
  if (!fs::remove(path, error) && error)
    io::fail(caller, path, "cannot be removed: " + error.message());
}

}  // namespace

Metadata metadata_of_checkpoint(std::int64_t step, Metadata metadata, std::int64_t keep_last) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorKind::value, std::string(saving) + ": " + what);
  };
  if (step < 0) refuse("step " + std::to_string(step) + " is negative");
  if (keep_last < 1) refuse("keep_last is " + std::to_string(keep_last) + ", at least 1 is wanted");
  if (!metadata.emplace(step_key, std::to_string(step)).second)
    refuse("the metadata name " + std::string(step_key) + " is taken");
  return metadata;
}

DirectoryLock::DirectoryLock(const std::string& caller, const std::string& directory,
                             Missing missing, std::chrono::milliseconds patience)
    : place_(place_in(caller, directory, missing)),
      lock_(caller, directory, place_, lock_name, "another save", patience) {}

NewCheckpoint::NewCheckpoint(const std::string& directory, std::int64_t step, bool is_sharded)
    : directory_(directory), lock_(saving, directory, Missing::make) {
  remove_abandoned_files(directory);
  manifest_ = read_manifest(saving, directory);
  remove_dropped(directory, manifest_);
  for (int copy = 1; entry_.name.empty() || is_taken(directory, manifest_, entry_.name); ++copy)
    entry_.name = checkpoint_name(step, copy, is_sharded);
  entry_.step = step;
  path_ = join(directory, entry_.name);
  if (is_sharded) shards_ = std::make_unique<NewDirectory>(saving, path_);
}

NewCheckpoint::~NewCheckpoint() {
  if (is_announced_ && owner_.is_this()) take_back();
}

void NewCheckpoint::announce() {
  manifest_.dropped.push_back(entry_.name);
  write_manifest(saving, directory_, manifest_);
  is_announced_ = true;
}

void NewCheckpoint::take_back() {
  try {
    fs::remove_all(path_);
    std::erase(manifest_.dropped, entry_.name);
    write_manifest(saving, directory_, manifest_);
  } catch (const std::exception&) {
    // The next save removes it; a name of what is not there does no harm.
  }
}

std::string NewCheckpoint::list(const std::function<std::vector<ManifestFile>()>& commit,
                                std::int64_t keep_last) {
  announce();
  entry_.files = commit();
  if (shards_) shards_->commit();
  Manifest listed = manifest_;
  std::erase(listed.dropped, entry_.name);
  auto& kept = listed.checkpoints;
  kept.push_back(entry_);
  const auto surplus =
      std::max(static_cast<std::int64_t>(kept.size()) - keep_last, std::int64_t{0});
  for (auto entry = kept.begin(); entry != kept.begin() + surplus; ++entry)
    listed.dropped.push_back(entry->name);
  kept.erase(kept.begin(), kept.begin() + surplus);
  try {
    write_manifest(saving, directory_, listed);
  } catch (...) {
    // Where only flushing failed, the new manifest is in place and lists the checkpoint.
    is_announced_ = false;
    is_announced_ = !read_manifest(saving, directory_).find(entry_.name);
    throw;
  }
  is_announced_ = false;
  remove_dropped(directory_, listed);
  return path_;
}

void remove_what_killed_saves_left(const std::string& caller, const std::string& directory) {
  const DirectoryLock lock(caller, directory, Missing::fail);
  remove_abandoned_files(directory);
  Manifest manifest = read_manifest(caller, directory);
  if (manifest.dropped.empty()) return;
  remove_dropped(directory, manifest);
  write_manifest(caller, directory, manifest);
}

void remove_checkpoints(const std::string& caller, const std::string& directory) {
  const DirectoryLock lock(caller, directory, Missing::fail);
  Manifest manifest = read_manifest(caller, directory);
  if (manifest == Manifest()) return;
  for (const ManifestEntry& entry : std::exchange(manifest.checkpoints, {}))
    manifest.dropped.push_back(entry.name);
  write_manifest(caller, directory, manifest);
  remove_dropped(directory, manifest);
  write_manifest(caller, directory, manifest);
}

}  // namespace ein::io
