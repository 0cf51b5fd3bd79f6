#include <ein/checkpoint.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include <ein/error.hpp>

#include "io/file.hpp"
#include "io/manifest.hpp"
#include "io/number.hpp"
#include "io/safetensors_header.hpp"
#include "io/xxh64.hpp"

namespace ein {
namespace {

namespace fs = std::filesystem;

const std::string step_key = "ein.step";

/// Held while a directory's files are written (alone) or read (together). It vanishes with its
/// process.
class DirectoryLock {
 public:
  DirectoryLock(const std::string& caller, const std::string& directory, bool alone)
      : fd_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_.get() < 0) {
      io::fail(caller, directory, "cannot be opened: " + std::generic_category().message(errno));
    }
    // File systems without locks have to do without.
    while (::flock(fd_.get(), alone ? LOCK_EX : LOCK_SH) != 0 && errno == EINTR) {
    }
  }

 private:
  io::Descriptor fd_;
};

std::string join(const std::string& directory, std::string_view name) {
  return (fs::path(directory) / name).string();
}

void remove_quietly(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

/// Removes what it can of the files that are no longer listed, and forgets them.
void remove_dropped(const std::string& directory, io::Manifest& manifest) {
  std::erase_if(manifest.dropped, [&](const std::string& name) {
    std::error_code error;
    if (!manifest.find(name)) fs::remove(join(directory, name), error);
    return !error;
  });
}

io::ManifestEntry write_tensors(const std::string& directory, const std::string& name,
                                std::int64_t step, const StateDict& tensors, Metadata metadata) {
  metadata[step_key] = std::to_string(step);
  const auto layout = io::layout_safetensors("save_checkpoint", tensors, metadata);
  io::ReplacementFile file("save_checkpoint", join(directory, name));
  io::ManifestEntry entry{name, step, 0, 0};
  io::Xxh64 checksum;
  layout.write([&](const void* from, std::size_t bytes) {
    file.write(from, bytes);
    checksum.update(from, bytes);
    entry.size += bytes;
  });
  file.commit();
  entry.checksum = checksum.digest();
  return entry;
}

void write_manifest(const std::string& directory, const io::Manifest& manifest) {
  io::replace_file("save_checkpoint", join(directory, io::manifest_name), io::to_json(manifest));
}

void verify(const io::InputFile& file, const io::ManifestEntry& entry) {
  if (file.size() != entry.size) {
    file.fail("is damaged: it has " + std::to_string(file.size()) + " bytes, was written with " +
              std::to_string(entry.size));
  }
  io::Xxh64 checksum;
  std::vector<std::byte> strip(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < file.size(); at += strip.size()) {
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(strip.size(), file.size() - at));
    file.read(at, strip.data(), bytes);
    checksum.update(strip.data(), bytes);
  }
  if (checksum.digest() != entry.checksum)
    file.fail("is damaged: its checksum is not that of what was written");
}

/// The metadata's own entry, taken out of them; 0 when there is none.
std::int64_t take_step(const io::InputFile& file, Metadata& metadata) {
  const auto node = metadata.extract(step_key);
  if (node.empty()) return 0;
  const std::string& text = node.mapped();
  const auto step = io::number_of<std::int64_t>(text);
  if (!step || *step < 0)
    file.fail("has the step " + io::in_quotes(text) + ", which is no whole number");
  return *step;
}

/// `entry` is what the manifest says of the file, if it does.
Checkpoint load_file(const std::string& path, const io::ManifestEntry* entry, bool mmap) {
  const io::InputFile file("load_checkpoint", path);
  if (entry) verify(file, *entry);
  Safetensors content = io::load_safetensors(file, mmap);
  const std::int64_t step = take_step(file, content.metadata);
  if (entry && step != entry->step) {
    file.fail("is of step " + std::to_string(step) + ", in the manifest of step " +
              std::to_string(entry->step));
  }
  return {step, std::move(content.tensors), std::move(content.metadata), path, {}};
}

Checkpoint load_newest(const std::string& directory, bool mmap) {
  const DirectoryLock lock("load_checkpoint", directory, false);
  const io::Manifest manifest = io::read_manifest("load_checkpoint", directory);
  if (manifest.checkpoints.empty()) {
    io::fail("load_checkpoint", directory, "has no checkpoint that a manifest.json lists");
  }
  std::string passed_over;
  for (auto entry = manifest.checkpoints.rbegin(); entry != manifest.checkpoints.rend(); ++entry) {
    try {
      Checkpoint checkpoint = load_file(join(directory, entry->file), &*entry, mmap);
      checkpoint.note = std::move(passed_over);
      return checkpoint;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::file) throw;
      if (!passed_over.empty()) passed_over += '\n';
      passed_over += std::string("passed over ") + error.what();
    }
  }
  io::fail("load_checkpoint", directory, "has no whole checkpoint:\n" + passed_over);
}

}  // namespace

std::string save_checkpoint(const std::string& directory, std::int64_t step,
                            const StateDict& tensors, const Metadata& metadata,
                            std::int64_t keep_last) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorKind::value, "save_checkpoint: " + what);
  };
  if (step < 0) refuse("step " + std::to_string(step) + " is negative");
  if (keep_last < 1) refuse("keep_last is " + std::to_string(keep_last) + ", less than 1");
  if (metadata.contains(step_key)) refuse("the metadata name " + step_key + " is taken");

  std::error_code error;
  fs::create_directories(directory, error);  // what fails here fails again below
  const DirectoryLock lock("save_checkpoint", directory, true);
  io::remove_abandoned_files(directory);
  io::Manifest manifest = io::read_manifest("save_checkpoint", directory);
  remove_dropped(directory, manifest);

  std::string name = io::checkpoint_name(step, 1);
  for (int copy = 2; manifest.find(name); ++copy) name = io::checkpoint_name(step, copy);
  manifest.checkpoints.push_back(write_tensors(directory, name, step, tensors, metadata));
  auto& kept = manifest.checkpoints;
  const auto surplus =
      std::max(static_cast<std::int64_t>(kept.size()) - keep_last, std::int64_t{0});
  for (auto entry = kept.begin(); entry != kept.begin() + surplus; ++entry)
    manifest.dropped.push_back(entry->file);
  kept.erase(kept.begin(), kept.begin() + surplus);
  try {
    write_manifest(directory, manifest);
  } catch (...) {
    // Unless the new manifest is in place and only flushing it failed, nobody knows of the file.
    if (!io::read_manifest("save_checkpoint", directory).find(name))
      remove_quietly(join(directory, name));
    throw;
  }
  remove_dropped(directory, manifest);
  return join(directory, name);
}

Checkpoint load_checkpoint(const std::string& path, SafetensorsOptions options) {
  std::error_code error;
  if (fs::is_directory(path, error)) return load_newest(path, options.mmap);
  const fs::path file(path);
  const std::string directory = file.has_parent_path() ? file.parent_path().string() : ".";
  io::Manifest manifest;
  std::string note;
  try {
    manifest = io::read_manifest("load_checkpoint", directory);
  } catch (const Error& damage) {
    note = std::string("the checksum was not verified: ") + damage.what();
  }
  Checkpoint checkpoint = load_file(path, manifest.find(file.filename().string()), options.mmap);
  checkpoint.note = std::move(note);
  return checkpoint;
}

bool has_checkpoint(const std::string& directory) {
  return !io::read_manifest("has_checkpoint", directory).checkpoints.empty();
}

}  // namespace ein
