// A file that has no place on a disk, but a path.
#pragma once

#include <cstddef>
#include <string>

namespace ein::fuzz {

class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void write(const void* from, std::size_t bytes) const;
  /// Nothing but these bytes.
  void replace(const void* from, std::size_t bytes) const;
  std::string path() const;

 private:
  int fd_;
};

}  // namespace ein::fuzz
