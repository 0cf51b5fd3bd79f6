#include "io/safetensors_index.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "io/file.hpp"
#include "io/json.hpp"
#include "io/safetensors_header.hpp"

namespace ein::io {
namespace {

constexpr std::uint64_t longest_index = 1 << 26;
constexpr int deepest = 8;  // other programs keep more in it

/// In the directory of the index, and nowhere else.
bool is_file_name(std::string_view name) {
  return name.size() <= 255 && name.ends_with(".safetensors") && !name.starts_with('.') &&
         name.find('/') == name.npos && name.find('\0') == name.npos;
}

/// The object weight_map of the outermost one; all else is passed over.
class IndexReader final : public JsonEvents {
 public:
  IndexReader(const std::string& caller, const std::string& path)
      : JsonEvents(deepest), caller_(caller), path_(path) {}

  WeightMap read(std::string_view text) {
    read_json(text, *this, [&](const std::string& what) { fail(what); });
    if (!has_map_) fail(no_map);
    return std::move(files_);
  }

  bool key(std::string& key) override {
    if (depth() == 1) is_map_ = key == "weight_map";
    if (is_in_map()) name_ = std::move(key);
    return true;
  }
  bool string(std::string& value) override {
    if (is_before_map()) fail(no_map);
    if (!is_in_map()) return true;
    if (!is_file_name(value)) not_a_name(in_quotes(value));
    files_.insert_or_assign(name_, std::move(value));
    return true;
  }
  bool plain() override { return pass("a number or a word"); }
  bool start_array(std::size_t size) override {
    return pass("an array") && JsonEvents::start_array(size);
  }
  bool start_object(std::size_t size) override {
    if (is_in_map()) not_a_name("an object");
    has_map_ |= is_before_map();
    return JsonEvents::start_object(size);
  }

 private:
  static constexpr const char* no_map = "it has no object weight_map";
  bool is_before_map() const { return is_map_ && depth() == 1; }
  bool is_in_map() const { return is_map_ && depth() == 2; }
  bool pass(const char* what) const {
    if (is_before_map()) fail(no_map);
    if (is_in_map()) not_a_name(what);
    return true;
  }
  [[noreturn]] void fail(const std::string& what) const {
    io::fail(caller_, path_, "is damaged: " + what);
  }
  [[noreturn]] void not_a_name(const std::string& what) const {
    fail(in_quotes(name_) + " is in " + what + ", which is no name of a .safetensors file");
  }

  const std::string &caller_, &path_;
  WeightMap files_;
  std::string name_;
  bool is_map_ = false, has_map_ = false;
};

}  // namespace

std::string shard_name(std::size_t number, std::size_t count) {
  char text[64];
  std::snprintf(text, sizeof text, "model-%05zu-of-%05zu.safetensors", number + 1, count);
  return text;
}

std::string index_of(const std::vector<StateDict>& shards) {
  std::map<std::string, std::string> files;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const auto& [name, tensor] : shards[i]) {
      files[name] = shard_name(i, shards.size());
      bytes += tensor.nbytes();
    }
  }
  std::vector<std::string> lines;
  for (const auto& [name, file] : files)
    lines.push_back(json_string(name) + ": " + json_string(file));
  return in_lines(
             {"\"metadata\": " + in_lines({"\"total_size\": " + std::to_string(bytes)}, "{}", 2),
              "\"weight_map\": " + in_lines(lines, "{}", 2)},
             "{}", 0) +
         '\n';
}

WeightMap parse_index(std::string_view text, const std::string& caller, const std::string& path) {
  return IndexReader(caller, path).read(text);
}

Safetensors load_indexed(const std::string& caller, const std::string& path, const LoadFile& load) {
  const InputFile index(caller, path);
  if (index.size() > longest_index)
    index.fail("is damaged: it has " + std::to_string(index.size()) + " bytes");
  const WeightMap map = parse_index(index.read(), caller, path);
  std::map<std::string, std::size_t> tensors_of_file;
  for (const auto& [name, file] : map) ++tensors_of_file[file];
  Safetensors all;
  bool is_first = true;
  for (const auto& [name, count] : tensors_of_file) {
    const InputFile file(caller, (std::filesystem::path(path).parent_path() / name).string());
    Safetensors part = load(file, name);
    const auto check_place = [&](const std::string& tensor) {
      const auto listed = map.find(tensor);
      if (listed == map.end() || listed->second != name)
        file.fail("has a tensor " + in_quotes(tensor) + ", which the index does not place there");
    };
    for (const auto& [tensor, value] : part.tensors) check_place(tensor);
    for (const auto& [tensor, value] : part.foreign) check_place(tensor);
    if (const std::size_t there = part.tensors.size() + part.foreign.size(); there != count) {
      file.fail("has " + std::to_string(there) + " tensors; its index places " +
                std::to_string(count) + " there");
    }
    all.tensors.merge(part.tensors);
    all.foreign.merge(part.foreign);
    if (std::exchange(is_first, false)) all.metadata = std::move(part.metadata);
  }
  return all;
}

}  // namespace ein::io
