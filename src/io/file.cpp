#include "io/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <ein/error.hpp>

#include "io/temporary_name.hpp"
#include "machine/printable.hpp"

namespace ein::io {

std::string reason(int error) { return std::generic_category().message(error); }

namespace {

// The most that Linux moves in one call, less the last page.
constexpr std::size_t longest_transfer = 0x7ffff000;

/// Flushes it to the disk; false, with errno, when the system reports an error. EBADF: it is open
/// as a place alone. EINVAL: a file system that does not flush directories on request.
bool flush_directory(int fd) { return ::fsync(fd) == 0 || errno == EBADF || errno == EINVAL; }

/// Names of temporary files that are tried; one after which somebody else is quicker to lock it is
/// given up.
constexpr int most_names = 100;

/// Locks a temporary file or directory just made. False, with EEXIST, when somebody else has locked
/// it, and may have taken it for abandoned.
bool lock_own(FileLock& lock, int fd) {
  struct stat status {};
  const bool is_locked = lock.take(fd, LOCK_EX | LOCK_NB);
  if (!is_locked && errno != EWOULDBLOCK) return true;  // a file system without locks
  if (is_locked && (::fstat(fd, &status) != 0 || status.st_nlink > 0)) return true;
  lock.release();
  errno = EEXIST;
  return false;
}

}  // namespace

void fail(std::string_view caller, const std::string& path, const std::string& what) {
  throw Error(ErrorKind::file, std::string(caller) + ": \"" + printable_line(path) + "\" " + what);
}

std::string join(const std::string& directory, std::string_view name) {
  return (std::filesystem::path(directory) / name).string();
}

std::string in_quotes(std::string_view bytes) {
  constexpr std::size_t longest = 40;
  std::string text = "'";
  for (const char c : bytes.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      text += "\\x";
      text += "0123456789abcdef"[byte / 16];
      text += "0123456789abcdef"[byte % 16];
    }
  }
  return text + (bytes.size() > longest ? "...'" : "'");
}

bool Descriptor::close() {
  const int fd = std::exchange(fd_, -1);
  return fd < 0 || ::close(fd) == 0;
}

bool FileLock::take(int fd, int how) {
  release();
  while (::flock(fd, how) != 0) {
    if (errno != EINTR) return false;
  }
  fd_ = fd;
  owner_ = {};
  return true;
}
void FileLock::release() {
  if (const int fd = std::exchange(fd_, -1); fd >= 0 && owner_.is_this()) ::flock(fd, LOCK_UN);
}

namespace {
/// Writes all of it; false, with errno, where that fails.
bool write_all(int fd, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const ssize_t put = ::write(fd, at, std::min(bytes, longest_transfer));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return true;
}
}  // namespace

InputFile::InputFile(std::string caller, const std::string& path)
    : caller_(std::move(caller)), path_(path) {
  if (path.find('\0') != std::string::npos) fail("is cut by a NUL byte");
  // Without O_NONBLOCK the opening of a pipe would wait for a writer.
  fd_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd_.get() < 0) fail("cannot be opened: " + reason(errno));
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) fail("cannot be examined: " + reason(errno));
  if (!S_ISREG(status.st_mode)) fail("is not a regular file");
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void InputFile::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got =
        ::pread(fd_.get(), at, std::min(bytes, longest_transfer), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot be read: " + reason(errno));
    if (got == 0) fail("ends at byte " + std::to_string(offset) + ", before its content does");
    at += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

std::string InputFile::read(std::uint64_t offset, std::size_t bytes) const {
  std::string text(bytes, '\0');
  read(offset, text.data(), bytes);
  return text;
}

std::shared_ptr<std::byte> InputFile::map() const {
  assert(size_ > 0);
  const std::size_t bytes = size_;
  void* begin = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd_.get(), 0);
  if (begin == MAP_FAILED) fail("cannot be mapped: " + reason(errno));
  return {static_cast<std::byte*>(begin), [bytes](std::byte* p) { ::munmap(p, bytes); }};
}

ReplacementFile::ReplacementFile(std::string caller, const std::string& path)
    : ReplacementFile(Begun(), std::move(caller), path) {
  struct stat status {};
  const bool exists =
      ::fstatat(place_.directory().get(), place_.name().c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (!exists && errno != ENOENT) fail("cannot be written: " + reason(errno));
  if (exists && S_ISDIR(status.st_mode)) fail("cannot be written: it is a directory");
  if (exists && !S_ISREG(status.st_mode)) fail("cannot be written: it is not a regular file");
  begin(exists ? 0600 : 0666);
  if (exists && ::fchmod(fd_.get(), status.st_mode & 0777) != 0)
    fail("cannot be given its permissions: " + reason(errno));
}

ReplacementFile::ReplacementFile(std::string caller, const Descriptor& directory,
                                 const std::string& path, const std::string& name)
    : ReplacementFile(Begun(), std::move(caller), path, directory, name) {
  begin(0600);
  if (::fchmod(fd_.get(), 0600) != 0)  // whatever the umask is
    fail("cannot be given its permissions: " + reason(errno));
}

void ReplacementFile::begin(mode_t mode) {
  for (int i = 0; locked_.get() < 0; ++i) {
    make_temporary(mode);
    if (locked_.get() < 0 && (errno != EEXIST || i == most_names))
      fail("cannot be written: no file can be made beside it (" + reason(errno) + ")");
  }
}

/// Leaves `locked_` closed, with errno, where it fails.
void ReplacementFile::make_temporary(mode_t mode) {
  const int directory = place_.directory().get();
  temporary_ = temporary_name();
  fd_.reset(::openat(directory, temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (fd_.get() < 0) return temporary_.clear();  // who has this name is another
  locked_.reset(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (locked_.get() < 0 || lock_own(lock_, locked_.get())) return;
  ::unlinkat(directory, temporary_.c_str(), 0);
  locked_.close();
  errno = EEXIST;
}

ReplacementFile::~ReplacementFile() {
  if (!temporary_.empty() && owner_.is_this())
    ::unlinkat(place_.directory().get(), temporary_.c_str(), 0);
}

void ReplacementFile::write(const void* from, std::size_t bytes) {
  if (!write_all(fd_.get(), from, bytes)) fail("cannot be written: " + reason(errno));
}

void ReplacementFile::commit() {
  if (::fsync(fd_.get()) != 0 || !fd_.close()) fail("cannot be written: " + reason(errno));
  const int directory = place_.directory().get();
  if (::renameat(directory, temporary_.c_str(), directory, place_.name().c_str()) != 0)
    fail("cannot be replaced: " + reason(errno));
  temporary_.clear();
  if (!flush_directory(directory)) {
    fail("was replaced, but a power failure may undo that: its directory cannot be flushed (" +
         reason(errno) + ")");
  }
}

NewDirectory::NewDirectory(std::string caller, const std::string& path)
    : NewDirectory(Begun(), std::move(caller), path) {
  if (path.find('\0') != path.npos) fail("is cut by a NUL byte");
  const int around = place_.directory().get();
  for (int i = 0;; ++i) {
    const std::string name = temporary_name();
    if (::mkdirat(around, name.c_str(), 0777) == 0) {
      temporary_ = (std::filesystem::path(path).parent_path() / name).string();
      fd_.reset(::openat(around, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (fd_.get() < 0 && errno != ENOENT) fail("cannot be made: " + reason(errno));
      if (fd_.get() >= 0 && lock_own(lock_, fd_.get())) return;
      ::unlinkat(around, name.c_str(), AT_REMOVEDIR);
      temporary_.clear();
      errno = EEXIST;
    }
    if (errno != EEXIST || i == most_names)
      fail("cannot be made: no directory can be made beside it (" + reason(errno) + ")");
  }
}

NewDirectory::~NewDirectory() {
  if (temporary_.empty() || !owner_.is_this()) return;
  try {
    std::filesystem::remove_all(temporary_);
  } catch (const std::exception&) {
    // It stays, as of a process that died, until the next save removes it.
  }
}

void NewDirectory::commit() {
  if (!flush_directory(fd_.get())) fail("cannot be written: " + reason(errno));
  take_place(std::filesystem::path(temporary_).filename().string());
  if (!flush_directory(place_.directory().get()))
    fail("was made, but a power failure may undo that: its directory cannot be flushed (" +
         reason(errno) + ")");
}

void NewDirectory::take_place(const std::string& temporary_name) {
  const int around = place_.directory().get();
  std::error_code ignored;
  if (system::exchange_names(around, temporary_name, name_)) {
    std::filesystem::remove_all(temporary_, ignored);  // the one that was there
  } else {
    if (errno != ENOENT) std::filesystem::remove_all(path_, ignored);
    if (::renameat(around, temporary_name.c_str(), around, name_.c_str()) != 0)
      fail("cannot be made: " + reason(errno));
  }
  temporary_.clear();
}

void replace_file(std::string caller, const std::string& path, std::string_view bytes) {
  ReplacementFile file(std::move(caller), path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

void append_to_file(std::string_view caller, const std::string& path, std::string_view bytes) {
  const Place place(std::string(caller), path);
  Descriptor file(::openat(place.directory().get(), place.name().c_str(),
                           O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                           0666));
  if (file.get() < 0 || !write_all(file.get(), bytes.data(), bytes.size()) || !file.close())
    fail(caller, path, "cannot be written: " + reason(errno));
}

namespace {
/// Of an open directory, which it closes; nothing of null.
std::vector<std::string> names_in(DIR* directory) {
  std::vector<std::string> names;
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> open(directory, close);
  while (const dirent* const entry = open ? ::readdir(open.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}
}  // namespace

std::vector<std::string> listing_of(const std::string& directory) {
  return names_in(::opendir(directory.c_str()));
}

std::vector<std::string> listing_of(const Descriptor& directory) {
  // Another open file: a place in the listing of its own.
  const int fd = ::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const open = fd < 0 ? nullptr : ::fdopendir(fd);
  if (fd >= 0 && !open) ::close(fd);
  return names_in(open);
}

void remove_abandoned_files(const std::string& directory) {
  const Boot here = this_boot();
  for (const std::string& name : listing_of(directory)) {
    if (!is_temporary_of(here, name)) continue;
    const std::string path = join(directory, name);
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    FileLock lock;
    std::error_code error;
    if (file.get() >= 0 && lock.take(file.get(), LOCK_EX | LOCK_NB))
      std::filesystem::remove_all(path, error);
  }
}

}  // namespace ein::io
