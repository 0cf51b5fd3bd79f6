// Any bytes as a .safetensors file: either an ein::Error, or tensors that have all of the file's
// data and that, written again, are read back the same.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <ein/error.hpp>
#include <ein/safetensors.hpp>

#include "io/safetensors_header.hpp"

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz_safetensors: %s\n", what);
  std::abort();
}

/// A file that has no place on a disk, but a path.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) { require(fd_ >= 0, "no memory file"); }
  ~MemoryFile() { ::close(fd_); }
  void write(const void* from, std::size_t bytes) const {
    require(::write(fd_, from, bytes) == static_cast<ssize_t>(bytes), "a short write");
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

bool same(const ein::Tensor& a, const ein::Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.nbytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file;
  file.write(data, size);
  ein::Safetensors mapped;
  try {
    mapped = ein::load_safetensors(file.path());
  } catch (const ein::Error& error) {
    require(error.kind() == ein::ErrorKind::file, "an error of another kind");
    bool copies = true;
    try {
      ein::load_safetensors(file.path(), {.mmap = false});
    } catch (const ein::Error&) {
      copies = false;
    }
    require(!copies, "refused when mapped, accepted when copied");
    return 0;
  }
  std::uint64_t header = 0;
  std::memcpy(&header, data, sizeof header);
  std::size_t bytes = sizeof header + header;
  for (const auto& [name, tensor] : mapped.tensors) bytes += tensor.nbytes();
  require(bytes == size, "bytes that are no tensor's");

  const MemoryFile written;
  ein::io::layout_safetensors("fuzz", mapped.tensors, mapped.metadata)
      .write([&](const void* from, std::size_t n) { written.write(from, n); });
  const ein::Safetensors back = ein::load_safetensors(written.path(), {.mmap = false});
  require(back.metadata == mapped.metadata, "other metadata after a round trip");
  require(back.tensors.size() == mapped.tensors.size(), "other tensors after a round trip");
  for (const auto& [name, tensor] : mapped.tensors) {
    require(same(tensor, back.tensors.at(name)), "another tensor after a round trip");
  }
  return 0;
}
