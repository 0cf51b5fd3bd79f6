#include "io/private_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "machine/environment.hpp"
#include "machine/printable.hpp"

namespace ein::io {
namespace {

/// Why others than this user could have put something there; empty where they cannot.
std::string why_open(const struct stat& status) {
  if (status.st_uid != ::geteuid() && status.st_uid != 0) return "belongs to another user";
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return "can be written by others; chmod go-w closes it";
  return "";
}

/// The same of a path whose links are followed.
std::string why_open(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "cannot be examined: " + reason(errno);
  return why_open(status);
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

/// Makes a directory and its parents, of mode 0700, where they are missing. False, with errno,
/// where one cannot be made.
bool make_directories(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return true;
  const std::string parent = without_slashes(std::filesystem::path(path).parent_path().string());
  if (errno != ENOENT || parent.empty() || parent == path) return false;
  return make_directories(parent) && (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST);
}

}  // namespace

std::string user_cache(std::string* why_not) {
  const auto refuse = [&](const std::string& why) {
    if (why_not) *why_not = why;
    return std::string();
  };
  std::string cache = environment(Variable::cache);
  if (cache.empty()) {
    const std::string home = environment(Variable::home);
    if (home.empty()) return refuse("neither XDG_CACHE_HOME nor HOME is a whole path");
    if (const std::string why = why_open(home); !why.empty())
      return refuse("\"" + printable_line(home) + "\" " + why);
    cache = home + "/.cache";
  }
  make_directories(cache);  // or it is not there, which comes next
  if (const std::string why = why_open(cache); !why.empty())
    return refuse("\"" + printable_line(cache) + "\" " + why);
  return cache;
}

// A slash at the end would follow a symbolic link.
PrivateDirectory::PrivateDirectory(std::string caller, std::string path, Others others)
    : caller_(std::move(caller)), path_(without_slashes(std::move(path))) {
  if (path_.find('\0') != std::string::npos) fail(caller_, path_.c_str(), "is cut by a NUL byte");
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  if (!make_directories(path_)) fail(caller_, path_, "cannot be made: " + reason(errno));
  const std::string above = parent.empty() ? "." : parent;
  if (const std::string why_not = why_open(above); !why_not.empty()) fail(caller_, above, why_not);
  directory_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (directory_.get() < 0) fail(caller_, path_, "cannot be opened: " + reason(errno));
  struct stat status {};
  if (::fstat(directory_.get(), &status) != 0)
    fail(caller_, path_, "cannot be examined: " + reason(errno));
  if (status.st_uid != ::geteuid()) fail(caller_, path_, "belongs to another user");
  const mode_t refused = others == Others::enter ? S_IWGRP | S_IWOTH : S_IRWXG | S_IRWXO;
  if ((status.st_mode & refused) != 0)
    fail(caller_, path_, "is open to other users; chmod 700 closes it");
  remove_abandoned_files(path_);
}

std::optional<std::string> PrivateDirectory::read(const std::string& name,
                                                  std::uint64_t most_bytes) const {
  // Without O_NONBLOCK the opening of a pipe would wait for a writer.
  const Descriptor file(
      ::openat(directory_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
      static_cast<std::uint64_t>(status.st_size) > most_bytes)
    return std::nullopt;
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t got = ::read(file.get(), bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    at += static_cast<std::size_t>(got);
  }
  return bytes;
}

void PrivateDirectory::replace(const std::string& name, std::string_view bytes) const {
  ReplacementFile file(caller_, directory_, join(path_, name), name);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

void PrivateDirectory::touch(const std::string& name) const {
  ::utimensat(directory_.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

void PrivateDirectory::remove(const std::string& name) const {
  ::unlinkat(directory_.get(), name.c_str(), 0);
}

std::vector<PrivateDirectory::Entry> PrivateDirectory::entries() const {
  std::vector<Entry> found;
  for (const std::string& name : listing_of(directory_)) {
    struct stat status {};
    if (::fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const auto& used = status.st_mtim;
    found.push_back({name, static_cast<std::uint64_t>(status.st_size),
                     static_cast<std::int64_t>(used.tv_sec) * 1'000'000'000 + used.tv_nsec});
  }
  return found;
}

}  // namespace ein::io
