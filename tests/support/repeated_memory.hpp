// Tensors of billions of elements that take little memory.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include <ein/tensor.hpp>

namespace ein::test {

/// Memory of at least so many bytes that holds `block` over and over. It is mapped from one piece;
/// a page that is written becomes one of its own.
inline std::shared_ptr<Storage> repeated_memory(std::span<const std::byte> block,
                                                std::size_t bytes) {
  constexpr std::size_t times = 1 << 16;  // whole pages, up to 64 KiB each
  const auto require = [](bool holds) {
    if (!holds) throw std::runtime_error("no memory that repeats");
  };
  std::vector<std::byte> piece;
  piece.reserve(block.size() * times);
  for (std::size_t i = 0; i < times; ++i) piece.insert(piece.end(), block.begin(), block.end());
  const int file = ::memfd_create("repeated", MFD_CLOEXEC);
  require(file >= 0);
  for (std::size_t written = 0; written < piece.size();) {
    const ssize_t more = ::write(file, piece.data() + written, piece.size() - written);
    require(more > 0);
    written += static_cast<std::size_t>(more);
  }
  const std::size_t pieces = (bytes + piece.size() - 1) / piece.size(),
                    whole = pieces * piece.size();
  void* const memory =
      ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(memory != MAP_FAILED);
  const std::shared_ptr<void> owner(memory, [whole](void* p) { ::munmap(p, whole); });
  for (std::size_t i = 0; i < pieces; ++i) {
    void* const at = static_cast<std::byte*>(memory) + i * piece.size();
    require(::mmap(at, piece.size(), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) == at);
  }
  ::close(file);
  return Storage::wrap(memory, whole, owner);
}

}  // namespace ein::test
