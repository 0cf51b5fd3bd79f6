#include "io/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <ein/error.hpp>
#include "io/file.hpp"
#include "io/json.hpp"
#include "io/xxh64.hpp"

namespace ein::io {
namespace {

using nlohmann::json;

constexpr std::uint64_t longest_manifest = 1 << 24;
constexpr int deepest = 5;  // the fields of a file of an entry
constexpr std::string_view prefix = "step-", suffix = ".safetensors";

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

/// Nothing else is read, written or removed because a manifest says so.
bool is_checkpoint_name(std::string_view name) {
  if (name.size() > 64 || !name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  const std::size_t dash = name.find('-');
  return is_number(name.substr(0, dash)) && (dash == name.npos || is_number(name.substr(dash + 1)));
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& caller, const std::string& path)
      : text_(text), caller_(caller), path_(path) {}

  Manifest read() const {
    const JsonTree tree(text_, deepest, [&](const std::string& what) { fail(what); });
    const json& root = tree.root();
    if (!root.is_object()) fail("it is no object");
    if (field(root, "version") != 1) fail("its version is not 1");
    Manifest manifest;
    for (const json& entry : array(root, "checkpoints")) {
      if (!entry.is_object()) fail("a checkpoint is no object");
      ManifestEntry& added = manifest.checkpoints.emplace_back();
      added.name = name(field(entry, "name"));
      added.step = step(field(entry, "step"));
      for (const json& file : array(entry, "files")) {
        if (!file.is_object()) fail("a file is no object");
        added.files.push_back(
            {unsigned_number(field(file, "size")), checksum(field(file, "xxh64"))});
      }
      if (added.files.empty() || (added.files.size() > 1 && !added.is_sharded()))
        fail(in_quotes(added.name) + " has " + std::to_string(added.files.size()) + " files");
    }
    for (const json& dropped : array(root, "dropped")) manifest.dropped.push_back(name(dropped));
    return manifest;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    io::fail(caller_, path_, "is damaged: " + what);
  }

  const json& field(const json& object, const char* name) const {
    const auto found = object.find(name);
    if (found == object.end()) fail("a field " + std::string(name) + " is missing");
    return *found;
  }
  const json& array(const json& object, const char* name) const {
    const json& value = field(object, name);
    if (!value.is_array()) fail("its " + std::string(name) + " are no array");
    return value;
  }
  std::string name(const json& value) const {
    if (!value.is_string()) fail("the name of a checkpoint is no string");
    const auto& name = value.get_ref<const std::string&>();
    if (!is_checkpoint_name(name)) fail(in_quotes(name) + " is no checkpoint's name");
    return name;
  }
  std::uint64_t unsigned_number(const json& value) const {
    if (!value.is_number_unsigned()) fail("a step or a size is no whole number");
    return value.get<std::uint64_t>();
  }
  std::int64_t step(const json& value) const {
    const std::uint64_t number = unsigned_number(value);
    if (number > std::uint64_t{INT64_MAX}) fail("a step exceeds 2^63 - 1");
    return static_cast<std::int64_t>(number);
  }
  std::uint64_t checksum(const json& value) const {
    std::uint64_t number = 0;
    if (value.is_string()) {
      const auto& digits = value.get_ref<const std::string&>();
      const char* end = digits.data() + digits.size();
      if (digits.size() == 16 && std::from_chars(digits.data(), end, number, 16).ptr == end)
        return number;
    }
    fail("a checksum is no string of 16 hexadecimal digits");
  }

  std::string_view text_;
  const std::string& caller_;
  const std::string& path_;
};

}  // namespace

bool ManifestEntry::is_sharded() const { return !name.ends_with(suffix); }

const ManifestEntry* Manifest::find(std::string_view name) const {
  const auto found = std::ranges::find(checkpoints, name, &ManifestEntry::name);
  return found == checkpoints.end() ? nullptr : &*found;
}

std::string checkpoint_name(std::int64_t step, int copy, bool is_sharded) {
  std::string digits = std::to_string(step);
  digits.insert(0, digits.size() < 6 ? 6 - digits.size() : 0, '0');
  if (copy > 1) digits += '-' + std::to_string(copy);
  return std::string(prefix) + digits + std::string(is_sharded ? "" : suffix);
}

Manifest read_manifest(const std::string& caller, const std::string& directory) {
  const std::filesystem::path path = std::filesystem::path(directory) / manifest_name;
  std::error_code error;
  if (std::filesystem::symlink_status(path, error).type() == std::filesystem::file_type::not_found)
    return {};
  const InputFile file(caller, path.string());
  if (file.size() > longest_manifest)
    file.fail("is damaged: it has " + std::to_string(file.size()) + " bytes");
  return parse_manifest(file.read(), caller, file.path());
}

Manifest parse_manifest(std::string_view text, const std::string& caller, const std::string& path) {
  return Reader(text, caller, path).read();
}

std::string to_json(const Manifest& manifest) {
  std::vector<std::string> entries, dropped;
  for (const ManifestEntry& entry : manifest.checkpoints) {
    std::vector<std::string> files;
    for (const ManifestFile& file : entry.files)
      files.push_back(in_lines({"\"size\": " + std::to_string(file.size),
                                "\"xxh64\": " + json_string(hex(file.checksum))},
                               "{}", 8));
    entries.push_back(
        in_lines({"\"files\": " + in_lines(files, "[]", 6), "\"name\": " + json_string(entry.name),
                  "\"step\": " + std::to_string(entry.step)},
                 "{}", 4));
  }
  for (const std::string& name : manifest.dropped) dropped.push_back(json_string(name));
  return in_lines({"\"checkpoints\": " + in_lines(entries, "[]", 2),
                   "\"dropped\": " + in_lines(dropped, "[]", 2), "\"version\": 1"},
                  "{}", 0) +
         '\n';
}

}  // namespace ein::io
