// Memory files of the system.
#include "support/memory_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace ein::fuzz {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

MemoryFile::MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) { require(fd_ >= 0); }
MemoryFile::~MemoryFile() { ::close(fd_); }

void MemoryFile::write(const void* from, std::size_t bytes) const {
  require(::write(fd_, from, bytes) == static_cast<ssize_t>(bytes));
}

void MemoryFile::replace(const void* from, std::size_t bytes) const {
  require(::ftruncate(fd_, 0) == 0 && ::lseek(fd_, 0, SEEK_SET) == 0);
  write(from, bytes);
}

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(fd_); }

}  // namespace ein::fuzz
