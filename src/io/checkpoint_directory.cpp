#include "io/checkpoint_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <ein/error.hpp>

namespace ein::io {
namespace {

namespace fs = std::filesystem;

/// Made if it is missing; what fails here fails again when it is opened.
const std::string& made(const std::string& directory) {
  std::error_code ignored;
  fs::create_directories(directory, ignored);
  return directory;
}

/// Removes what it can of the checkpoints that are no longer listed, and forgets them.
void remove_dropped(const std::string& directory, Manifest& manifest) {
  std::erase_if(manifest.dropped, [&](const std::string& name) {
    std::error_code error;
    if (!manifest.find(name)) fs::remove_all(join(directory, name), error);
    return !error;
  });
}

}  // namespace

Metadata metadata_of_checkpoint(std::int64_t step, Metadata metadata, std::int64_t keep_last) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorKind::value, std::string(saving) + ": " + what);
  };
  if (step < 0) refuse("step " + std::to_string(step) + " is negative");
  if (keep_last < 1) refuse("keep_last is " + std::to_string(keep_last) + ", less than 1");
  if (!metadata.emplace(step_key, std::to_string(step)).second)
    refuse("the metadata name " + std::string(step_key) + " is taken");
  return metadata;
}

DirectoryLock::DirectoryLock(const std::string& caller, const std::string& directory, bool alone)
    : fd_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_.get() < 0) {
    io::fail(caller, directory, "cannot be opened: " + std::generic_category().message(errno));
  }
  // File systems without locks have to do without.
  while (::flock(fd_.get(), alone ? LOCK_EX : LOCK_SH) != 0 && errno == EINTR) {
  }
}

NewCheckpoint::NewCheckpoint(const std::string& directory, std::int64_t step, bool is_sharded)
    : directory_(directory), lock_(saving, made(directory), true) {
  remove_abandoned_files(directory);
  manifest_ = read_manifest(saving, directory);
  remove_dropped(directory, manifest_);
  for (int copy = 1; copy == 1 || manifest_.find(entry_.name); ++copy)
    entry_.name = checkpoint_name(step, copy, is_sharded);
  entry_.step = step;
  path_ = join(directory, entry_.name);
  if (is_sharded) shards_ = std::make_unique<NewDirectory>(saving, path_);
}

std::string NewCheckpoint::list(std::vector<ManifestFile> files, std::int64_t keep_last) {
  if (shards_) shards_->commit();
  entry_.files = std::move(files);
  auto& kept = manifest_.checkpoints;
  kept.push_back(entry_);
  const auto surplus =
      std::max(static_cast<std::int64_t>(kept.size()) - keep_last, std::int64_t{0});
  for (auto entry = kept.begin(); entry != kept.begin() + surplus; ++entry)
    manifest_.dropped.push_back(entry->name);
  kept.erase(kept.begin(), kept.begin() + surplus);
  try {
    replace_file(saving, join(directory_, manifest_name), to_json(manifest_));
  } catch (...) {
    // Unless the new manifest is in place and only flushing it failed, nobody knows of the file.
    std::error_code ignored;
    if (!read_manifest(saving, directory_).find(entry_.name)) fs::remove_all(path_, ignored);
    throw;
  }
  remove_dropped(directory_, manifest_);
  return path_;
}

}  // namespace ein::io
