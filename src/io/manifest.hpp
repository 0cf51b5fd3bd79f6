// manifest.json: which checkpoints a directory has, and what shows that they are whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ein::io {

struct ManifestFile {
  std::uint64_t size = 0;      // bytes
  std::uint64_t checksum = 0;  // XXH64 of the whole file
  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

struct ManifestEntry {
  std::string name;  // in the manifest's directory
  std::int64_t step = 0;
  std::vector<ManifestFile> files;  // that file, or the shards in the directory of that name
  bool is_sharded() const;
  friend bool operator==(const ManifestEntry&, const ManifestEntry&) = default;
};

struct Manifest {
  std::vector<ManifestEntry> checkpoints;  // the newest last
  // Which may be there but are no checkpoints: no longer, or, while one is saved, not yet.
  std::vector<std::string> dropped;

  const ManifestEntry* find(std::string_view name) const;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

inline constexpr std::string_view manifest_name = "manifest.json";

/// "step-000123.safetensors", or "step-000123-2.safetensors" for the second of that step; of a
/// sharded one the same without ".safetensors".
std::string checkpoint_name(std::int64_t step, int copy, bool is_sharded);

/// An empty one where there is no such file. An Error of kind `file` naming `caller` when the file
/// is damaged; names in it are checkpoint names and nothing else.
Manifest read_manifest(const std::string& caller, const std::string& directory);

/// `text` is the whole file, and may be any bytes. Errors as above, which name `path`.
Manifest parse_manifest(std::string_view text, const std::string& caller, const std::string& path);

std::string to_json(const Manifest& manifest);

}  // namespace ein::io
