#include "cuda/cubin_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include <ein/error.hpp>

#include "cpu/parallel.hpp"
#include "io/file.hpp"
#include "io/xxh64.hpp"
#include "tensor/fork.hpp"
#include "tensor/shared_library.hpp"

namespace ein::gpu {
namespace {

namespace fs = std::filesystem;

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

std::string reason(int error) { return std::generic_category().message(error); }

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
    : directory_(std::move(directory)), max_bytes_(max_bytes) {
  if (directory_.find('\0') != std::string::npos)
    io::fail(caller, directory_.c_str(), "is cut by a NUL byte");
  // A slash at the end would follow a symbolic link.
  while (directory_.size() > 1 && directory_.ends_with('/')) directory_.pop_back();
  std::error_code error;
  const fs::path parent = fs::path(directory_).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST)
    io::fail(caller, directory_, "cannot be made: " + reason(errno));
  const io::Descriptor opened(
      ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (opened.get() < 0) io::fail(caller, directory_, "cannot be opened: " + reason(errno));
  struct stat status {};
  if (::fstat(opened.get(), &status) != 0)
    io::fail(caller, directory_, "cannot be examined: " + reason(errno));
  if (status.st_uid != ::geteuid()) io::fail(caller, directory_, "belongs to another user");
  if ((status.st_mode & 077) != 0)
    io::fail(caller, directory_, "is open to other users; chmod 700 closes it");
  io::remove_abandoned_files(directory_);
}

std::optional<CubinCache> CubinCache::of_user() {
  const std::string cache = io::user_cache();
  if (cache.empty()) return std::nullopt;
  try {
    return CubinCache(cache + "/ein/cubin");
  } catch (const Error&) {
    return std::nullopt;
  }
}

const std::optional<CubinCache>& CubinCache::of_process() {
  return made_once([] { return of_user(); });
}

std::string CubinCache::path(const Source& source) const {
  return directory_ + "/" + file_name(key_of(source));
}

std::optional<Cubin> CubinCache::find(const Source& source) const {
  const std::string key = key_of(source);
  const std::string path = directory_ + "/" + file_name(key);
  try {
    const io::InputFile file(caller, path);
    if (file.size() > largest_entry) return std::nullopt;
    std::optional<Cubin> cubin = entry_of(file.read(), key);
    if (!cubin) return std::nullopt;
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used just now
    return cubin;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::file) throw;
    return std::nullopt;  // it is not there, or was removed meanwhile
  }
}

void CubinCache::put(const Source& source, const Cubin& cubin) const {
  const std::string key = key_of(source);
  const std::string bytes = entry_bytes(key, cubin);
  if (bytes.size() > std::min(largest_entry, max_bytes_)) return;
  io::replace_file(caller, directory_ + "/" + file_name(key), bytes);
  remove_oldest();
}

/// Other processes may do the same at the same time, so what is gone is no error.
void CubinCache::remove_oldest() const {
  struct Entry {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  for (const std::string& name : io::listing_of(directory_)) {
    const fs::path path = io::join(directory_, name);
    std::error_code gone;
    const fs::file_time_type used = fs::last_write_time(path, gone);
    const std::uint64_t bytes = gone ? 0 : fs::file_size(path, gone);
    if (gone || path.extension() != suffix) continue;
    entries.push_back({used, bytes, path});
    total += bytes;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= max_bytes_) return;
    std::error_code ignored;
    fs::remove(entry.path, ignored);
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
