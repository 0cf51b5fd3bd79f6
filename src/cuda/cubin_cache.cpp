#include "cuda/cubin_cache.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <utility>

#include <ein/error.hpp>

#include "io/xxh64.hpp"
#include "machine/fork.hpp"
#include "machine/parallel.hpp"
#include "machine/shared_library.hpp"
#include "size/ask.hpp"

namespace ein::gpu {
namespace {

constexpr const char* caller = "cubin cache";
constexpr std::string_view suffix = ".cubin";
/// Changes with the file's layout, and with what compile() adds to a source's options.
constexpr std::uint64_t layout_version = 1;
constexpr std::uint64_t largest_entry = std::uint64_t{1} << 30;

/// Before the three parts of a file: the key in full, since two keys may have one hash; the log;
/// the image.
struct EntryHeader {
  char magic[8] = {'e', 'i', 'n', 'c', 'u', 'b', 'i', 'n'};
  std::uint64_t version = layout_version;
  std::uint64_t key_bytes = 0, log_bytes = 0, image_bytes = 0;
  std::uint64_t checksum = 0;  // of what is above and all parts
};
static_assert(sizeof(EntryHeader) == 48);

std::uint64_t checksum(const EntryHeader& header, std::string_view parts) {
  io::Xxh64 hash;
  hash.update(&header, offsetof(EntryHeader, checksum));
  hash.update(parts.data(), parts.size());
  return hash.digest();
}

/// Each part with its length, so that no two sources have the same key.
std::string key_of(const Source& source) {
  std::string key;
  const auto add = [&key](std::string_view part) {
    key += std::to_string(part.size()) + ":" + std::string(part) + "\n";
  };
  add(to_string(nvrtc_version()));
  add(source.arch);
  add(source.name);
  add(std::to_string(source.options.size()));
  for (const std::string& option : source.options) add(option);
  add(source.text);
  return key;
}

std::string file_name(std::string_view key) {
  return io::hex(io::xxh64(key)) + std::string(suffix);
}

}  // namespace

std::string entry_bytes(std::string_view key, const Cubin& cubin) {
  EntryHeader header;
  header.key_bytes = key.size();
  header.log_bytes = cubin.log.size();
  header.image_bytes = cubin.image.size();
  const std::string parts = std::string(key) + cubin.log + cubin.image;
  header.checksum = checksum(header, parts);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + parts;
}

std::optional<Cubin> entry_of(std::string_view bytes, std::string_view key) {
  EntryHeader header;
  const EntryHeader expected;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  std::string_view parts = bytes.substr(sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 ||
      header.version != expected.version || header.key_bytes != key.size()) {
    return std::nullopt;
  }
  std::uint64_t rest = parts.size();
  for (const std::uint64_t size : {header.key_bytes, header.log_bytes, header.image_bytes}) {
    if (size > rest) return std::nullopt;
    rest -= size;
  }
  if (rest != 0 || checksum(header, parts) != header.checksum || !parts.starts_with(key))
    return std::nullopt;
  return Cubin{std::string(parts.substr(header.key_bytes + header.log_bytes)),
               std::string(parts.substr(header.key_bytes, header.log_bytes))};
}

CubinCache::CubinCache(std::string directory, std::uint64_t max_bytes)
    : directory_(std::make_shared<const io::PrivateDirectory>(caller, std::move(directory))),
      max_bytes_(max_bytes) {}

std::optional<CubinCache> CubinCache::of_user(std::string* why_not) {
  const std::string cache = io::user_cache(why_not);
  if (cache.empty()) return std::nullopt;
  try {
    return CubinCache(cache + "/ein/cubin");
  } catch (const Error& error) {
    if (why_not) *why_not = error.what();
    return std::nullopt;
  }
}

const std::optional<CubinCache>& CubinCache::of_process() {
  return made_once([] { return of_user(); });
}

std::string CubinCache::path(const Source& source) const {
  return directory() + "/" + file_name(key_of(source));
}

std::optional<Cubin> CubinCache::find(const Source& source) const {
  const std::string key = key_of(source), name = file_name(key);
  const std::optional<std::string> bytes = directory_->read(name, largest_entry);
  std::optional<Cubin> cubin = bytes ? entry_of(*bytes, key) : std::nullopt;
  if (cubin) directory_->touch(name);
  return cubin;
}

void CubinCache::put(const Source& source, const Cubin& cubin) const {
  const std::string key = key_of(source);
  const std::string bytes = entry_bytes(key, cubin);
  if (bytes.size() > std::min(largest_entry, max_bytes_)) return;
  directory_->replace(file_name(key), bytes);
  remove_oldest();
}

/// Other processes may do the same at the same time, so what is gone is no error.
void CubinCache::remove_oldest() const {
  std::vector<io::PrivateDirectory::Entry> entries = directory_->entries();
  std::erase_if(entries, [](const auto& entry) { return !entry.name.ends_with(suffix); });
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.used < b.used; });
  std::uint64_t total = 0;
  for (const auto& entry : entries) total += entry.bytes;
  for (const auto& entry : entries) {
    if (total <= max_bytes_) return;
    directory_->remove(entry.name);
    total -= entry.bytes;
  }
}

std::vector<Compiled> compile_all(std::span<const Source> sources, const CubinCache* cache) {
  std::vector<std::size_t> first_of(sources.size());  // the source of which each is a copy
  std::vector<std::size_t> distinct;
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto [at, is_new] = seen.emplace(key_of(sources[i]), i);
    first_of[i] = at->second;
    if (is_new) distinct.push_back(i);
  }
  std::vector<Compiled> compiled(sources.size());
  std::vector<std::exception_ptr> errors(sources.size());
  host::parallel_for(static_cast<std::int64_t>(distinct.size()), [&](std::int64_t part) {
    const std::size_t i = distinct[static_cast<std::size_t>(part)];
    try {
      if (cache) {
        if (std::optional<Cubin> kept = cache->find(sources[i])) {
          compiled[i] = {std::move(*kept), true};
          return;
        }
      }
      compiled[i].cubin = compile(sources[i]);
    } catch (...) {
      errors[i] = std::current_exception();
      return;
    }
    if (!cache) return;
    try {
      cache->put(sources[i], compiled[i].cubin);
    } catch (const Error&) {
      // The kernel is there all the same; the next process compiles it again.
    }
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (first_of[i] != i) compiled[i] = compiled[first_of[i]];
  }
  return compiled;
}

}  // namespace ein::gpu
