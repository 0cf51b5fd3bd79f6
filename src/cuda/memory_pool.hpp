// MemoryPool: memory of a GPU that is used again without asking the driver.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/driver.hpp"
#include "tensor/memory_count.hpp"
#include "tensor/size_class.hpp"

namespace ein::gpu {

/// Blocks of a device, by size class. What is given back may be taken at once, though the device
/// still works on it: all work on it is of one stream, where what comes later waits. Thread-safe.
class MemoryPool {
 public:
  MemoryPool(Driver& driver, int device, Stream& stream);

  using Block = std::unique_ptr<DeviceMemory>;

  /// At least so many bytes, aligned to 256. When the driver has no more, gives back what is free
  /// and asks again; an Error of kind `memory` when that does not help.
  Block take(std::size_t bytes);
  /// A block that was taken for so many bytes.
  void give_back(Block block, std::size_t bytes);
  /// Gives free blocks back to the driver.
  void release();

  /// Bytes as they were asked for, and the most there were.
  MemoryCount& count() { return count_; }
  /// Bytes that the driver gave.
  std::size_t reserved() const { return reserved_.live(); }

 private:
  Block allocate(std::size_t bytes);
  bool release_free_blocks();

  Driver& driver_;
  int device_;
  Stream& stream_;
  std::mutex mutex_;
  std::array<std::vector<Block>, size_class::count> free_;
  MemoryCount count_, reserved_;
};

}  // namespace ein::gpu
