// What the fuzz targets share.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <ein/error.hpp>
#include <ein/tensor.hpp>

namespace ein::fuzz {

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

/// A file that has no place on a disk, but a path.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) { require(fd_ >= 0, "no memory file"); }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void write(const void* from, std::size_t bytes) const {
    require(::write(fd_, from, bytes) == static_cast<ssize_t>(bytes), "a short write");
  }
  /// Nothing but these bytes.
  void replace(const void* from, std::size_t bytes) const {
    require(::ftruncate(fd_, 0) == 0 && ::lseek(fd_, 0, SEEK_SET) == 0,
            "a memory file that cannot be emptied");
    write(from, bytes);
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

/// Bit for bit.
inline bool same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.nbytes() == 0 || std::memcmp(x.raw_data(), y.raw_data(), x.nbytes()) == 0;
}

/// What f returns; nothing but an Error of this kind may come out of it, and then `otherwise` is
/// the result.
template <class F, class T>
T value_or_error(ErrorKind kind, T otherwise, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    require(error.kind() == kind, "an error of another kind");
    require(error.what()[0] != '\0', "an error without words");
    return otherwise;
  }
}

}  // namespace ein::fuzz
