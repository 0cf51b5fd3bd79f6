#include <ein/checkpoint_files.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <ein/error.hpp>

#include "io/checkpoint_directory.hpp"
#include "io/file.hpp"
#include "io/manifest.hpp"
#include "io/number.hpp"
#include "io/safetensors_header.hpp"
#include "io/safetensors_index.hpp"
#include "io/safetensors_writer.hpp"
#include "io/xxh64.hpp"

namespace ein {
namespace {

namespace fs = std::filesystem;

constexpr const char* loading = "load_checkpoint";

bool is_directory(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

void require_checksum(const io::InputFile& file, const io::Xxh64& checksum,
                      const io::ManifestFile& written) {
  if (checksum.digest() != written.checksum)
    file.fail("is damaged: its checksum is not that of what was written");
}

void verify(const io::InputFile& file, const io::ManifestFile& written) {
  io::Xxh64 checksum;
  std::vector<std::byte> strip(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < file.size(); at += strip.size()) {
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(strip.size(), file.size() - at));
    file.read(at, strip.data(), bytes);
    checksum.update(strip.data(), bytes);
  }
  require_checksum(file, checksum, written);
}

/// Of a file that is mapped what is verified is what it has now; else it is what the tensors get.
Safetensors load_verified(const io::InputFile& file, const io::ManifestFile& written, bool mmap) {
  if (file.size() != written.size) {
    file.fail("is damaged: it has " + std::to_string(file.size()) + " bytes and was written with " +
              std::to_string(written.size));
  }
  if (mmap) {
    verify(file, written);
    return io::load_safetensors(file, true);
  }
  io::Xxh64 checksum;
  Safetensors content = io::load_safetensors(file, false, &checksum);
  require_checksum(file, checksum, written);
  return content;
}

/// The files that the index in a directory names, which are those that `entry` lists, if given.
Safetensors load_shards(const std::string& index, const io::ManifestEntry* entry, bool mmap) {
  std::map<std::string, io::ManifestFile, std::less<>> left;
  for (std::size_t i = 0; entry && i < entry->files.size(); ++i)
    left.emplace(io::shard_name(i, entry->files.size()), entry->files[i]);
  const auto load = [&](const io::InputFile& file, const std::string& name) {
    if (!entry) return io::load_safetensors(file, mmap);
    const auto node = left.extract(name);
    if (node.empty()) file.fail("is in the index and not in the manifest");
    return load_verified(file, node.mapped(), mmap);
  };
  Safetensors content = io::load_indexed(loading, index, load);
  if (!left.empty())
    io::fail(loading, index, "does not have " + left.begin()->first + ", which the manifest lists");
  return content;
}

/// The metadata's own entry, taken out of them; 0 when there is none.
std::int64_t take_step(const std::string& path, Metadata& metadata) {
  const auto node = metadata.extract(io::step_key);
  if (node.empty()) return 0;
  const std::string& text = node.mapped();
  const auto step = io::number_of<std::int64_t>(text);
  if (!step || *step < 0)
    io::fail(loading, path, "has the step " + io::in_quotes(text) + ", which is no whole number");
  return *step;
}

/// Of a file, or of a directory of shards. `entry` is what the manifest says of it, if it does.
Checkpoint load_one(const std::string& path, const io::ManifestEntry* entry, bool mmap) {
  Safetensors content;
  if (const std::string index = io::join(path, io::index_name); is_directory(path)) {
    content = load_shards(index, entry, mmap);
  } else if (path.ends_with(io::index_suffix)) {
    content = load_shards(path, nullptr, mmap);
  } else {
    const io::InputFile file(loading, path);
    content =
        entry ? load_verified(file, entry->files.front(), mmap) : io::load_safetensors(file, mmap);
  }
  if (!content.foreign.empty()) {
    const auto& [name, tensor] = *content.foreign.begin();
    io::fail(loading, path,
             "has a tensor " + io::in_quotes(name) + " of the dtype " +
                 io::in_quotes(tensor.dtype) +
                 ", which ein lacks; load_safetensors gives its bytes, and the other tensors");
  }
  const std::int64_t step = take_step(path, content.metadata);
  if (entry && step != entry->step) {
    io::fail(loading, path,
             "is of step " + std::to_string(step) + "; the manifest says that it is of step " +
                 std::to_string(entry->step));
  }
  return {step, std::move(content.tensors), std::move(content.metadata), path, {}};
}

/// The newest whole one that the manifest lists, if any; what was passed over.
std::optional<Checkpoint> newest_in(const std::string& directory, const io::Manifest& manifest,
                                    bool mmap, std::string& passed_over) {
  for (auto entry = manifest.checkpoints.rbegin(); entry != manifest.checkpoints.rend(); ++entry) {
    try {
      return load_one(io::join(directory, entry->name), &*entry, mmap);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::file) throw;
      if (!passed_over.empty()) passed_over += '\n';
      passed_over += std::string("passed over ") + error.what();
    }
  }
  return std::nullopt;
}

/// Without a lock, so that who may only read a directory can load, and keeps no saver waiting. A
/// saver replaces the manifest before it removes files: where a file is missing and the manifest is
/// another one by now, there is a newer checkpoint.
Checkpoint load_newest(const std::string& directory, bool mmap) {
  constexpr int most_tries = 100;
  for (int tries = 1;; ++tries) {
    const io::Manifest manifest = io::read_manifest(loading, directory);
    if (manifest.checkpoints.empty())
      io::fail(loading, directory, "has no checkpoint that a manifest.json lists");
    std::string passed_over;
    std::optional<Checkpoint> found = newest_in(directory, manifest, mmap, passed_over);
    if (!passed_over.empty() && tries < most_tries &&
        io::read_manifest(loading, directory) != manifest)
      continue;
    if (!found) io::fail(loading, directory, "has no whole checkpoint:\n" + passed_over);
    found->note = std::move(passed_over);
    return *std::move(found);
  }
}

}  // namespace

std::string io::save_in_one_file(const std::string& directory, std::int64_t step,
                                 const StateDict& tensors, const Metadata& metadata,
                                 std::int64_t keep_last,
                                 const std::function<Tensor(const Tensor&)>& whole) {
  const Metadata described = metadata_of_checkpoint(step, metadata, keep_last);
  NewCheckpoint checkpoint(directory, step, false);
  SafetensorsWriter file(saving, checkpoint.path(), tensors, described);
  for (const Tensor* tensor : file.tensors()) file.write(whole(*tensor));
  return checkpoint.list([&] { return std::vector{file.commit()}; }, keep_last);
}

std::string save_checkpoint(const std::string& directory, std::int64_t step,
                            const StateDict& tensors, const Metadata& metadata,
                            std::int64_t keep_last) {
  return io::save_in_one_file(directory, step, tensors, metadata, keep_last, std::identity());
}

Checkpoint load_checkpoint(const std::string& path, SafetensorsOptions options) {
  std::error_code error;
  if (is_directory(path) && !fs::exists(io::join(path, io::index_name), error))
    return load_newest(path, options.mmap);
  if (const fs::path index = path; index.filename() == io::index_name)  // of the directory it is in
    return load_checkpoint(index.has_parent_path() ? index.parent_path().string() : ".", options);
  fs::path one = fs::path(path).lexically_normal();
  if (!one.has_filename()) one = one.parent_path();  // "step-000123/"
  const std::string directory = one.has_parent_path() ? one.parent_path().string() : ".";
  io::Manifest manifest;
  std::string note;
  try {
    manifest = io::read_manifest(loading, directory);
  } catch (const Error& damage) {
    note = std::string("the checksum was not verified: ") + damage.what();
  }
  Checkpoint checkpoint = load_one(path, manifest.find(one.filename().string()), options.mmap);
  checkpoint.note = std::move(note);
  return checkpoint;
}

bool has_checkpoint(const std::string& directory) {
  return !io::read_manifest("has_checkpoint", directory).checkpoints.empty();
}

}  // namespace ein
