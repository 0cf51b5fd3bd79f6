// Memory files for a program linked with --wrap=open and so on: nothing of them reaches the system,
// whose calls take longer than the readers. What is mapped is a block of the heap, so
// AddressSanitizer knows where it ends.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>

#include "support/memory_file.hpp"

namespace {

constexpr int first_fd = 1 << 20;  // more than the system gives
constexpr const char* prefix = "/fuzz/";

std::string contents[4];
int files = 0;

std::string* contents_of(int fd) {
  return fd >= first_fd && fd < first_fd + files ? &contents[fd - first_fd] : nullptr;
}

std::set<void*>& mappings() {
  static std::set<void*> all;
  return all;
}

}  // namespace

namespace ein::fuzz {

MemoryFile::MemoryFile() : fd_(first_fd + files++) {
  if (!contents_of(fd_) || files > static_cast<int>(std::size(contents))) std::abort();
}
MemoryFile::~MemoryFile() = default;

void MemoryFile::write(const void* from, std::size_t bytes) const {
  contents_of(fd_)->append(static_cast<const char*>(from), bytes);
}
void MemoryFile::replace(const void* from, std::size_t bytes) const {
  contents_of(fd_)->assign(static_cast<const char*>(from), bytes);
}
std::string MemoryFile::path() const { return prefix + std::to_string(fd_ - first_fd); }

}  // namespace ein::fuzz

extern "C" {

int __real_open(const char* path, int flags, ...);
int __real_close(int fd);
int __real_fstat(int fd, struct stat* status);
ssize_t __real_pread(int fd, void* to, std::size_t bytes, off_t offset);
void* __real_mmap(void* at, std::size_t bytes, int access, int flags, int fd, off_t offset);
int __real_munmap(void* begin, std::size_t bytes);

int __wrap_open(const char* path, int flags, ...) {
  if (std::strncmp(path, prefix, std::strlen(prefix)) == 0)
    return first_fd + std::atoi(path + std::strlen(prefix));
  std::va_list arguments;
  va_start(arguments, flags);
  const int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return __real_open(path, flags, mode);
}

int __wrap_close(int fd) { return contents_of(fd) ? 0 : __real_close(fd); }

int __wrap_fstat(int fd, struct stat* status) {
  const std::string* file = contents_of(fd);
  if (!file) return __real_fstat(fd, status);
  *status = {};
  status->st_mode = S_IFREG | 0600;
  status->st_size = static_cast<off_t>(file->size());
  return 0;
}

ssize_t __wrap_pread(int fd, void* to, std::size_t bytes, off_t offset) {
  const std::string* file = contents_of(fd);
  if (!file) return __real_pread(fd, to, bytes, offset);
  const std::size_t at = std::min(static_cast<std::size_t>(offset), file->size());
  bytes = std::min(bytes, file->size() - at);
  std::memcpy(to, file->data() + at, bytes);
  return static_cast<ssize_t>(bytes);
}

void* __wrap_mmap(void* at, std::size_t bytes, int access, int flags, int fd, off_t offset) {
  const std::string* file = contents_of(fd);
  if (!file) return __real_mmap(at, bytes, access, flags, fd, offset);
  if (offset != 0 || bytes != file->size()) std::abort();
  void* block = nullptr;
  if (::posix_memalign(&block, 64, bytes) != 0) std::abort();
  mappings().insert(block);
  return std::memcpy(block, file->data(), bytes);
}

int __wrap_munmap(void* begin, std::size_t bytes) {
  if (mappings().erase(begin) == 0) return __real_munmap(begin, bytes);
  std::free(begin);
  return 0;
}

}  // extern "C"
