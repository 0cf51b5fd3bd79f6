#include "cuda/memory_pool.hpp"

#include <algorithm>
#include <string>

#include <ein/error.hpp>

#include "machine/fork.hpp"
#include "size/ask.hpp"

namespace ein::gpu {
namespace {

/// Smaller ones would not save memory: the driver rounds up to as much.
constexpr std::size_t least_bytes = 512;

std::size_t class_of(std::size_t bytes) { return size_class::of(std::max(bytes, least_bytes)); }

}  // namespace

MemoryPool::MemoryPool(Driver& driver, int device, Stream& stream)
    : driver_(driver), device_(device), stream_(stream) {}

MemoryPool::Block MemoryPool::take(std::size_t bytes) {
  const std::size_t index = class_of(bytes);
  const NoForkLock lock(mutex_);
  Block block;
  if (free_[index].empty()) {
    block = allocate(size_class::bytes(index));
  } else {
    block = std::move(free_[index].back());
    free_[index].pop_back();
  }
  count_.add(bytes);
  return block;
}

void MemoryPool::give_back(Block block, std::size_t bytes) {
  const NoForkLock lock(mutex_);
  free_[class_of(bytes)].push_back(std::move(block));
  count_.remove(bytes);
}

void MemoryPool::release() {
  const NoForkLock lock(mutex_);
  release_free_blocks();
}

MemoryPool::Block MemoryPool::allocate(std::size_t bytes) {
  for (bool is_last = false;; is_last = true) {
    try {
      auto block = std::make_unique<DeviceMemory>(driver_, device_, bytes);
      reserved_.add(bytes);
      return block;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory) throw;
      if (!is_last && release_free_blocks()) continue;
      throw Error(ErrorKind::memory, std::string(error.what()) + "\n  " +
                                         std::to_string(count_.live()) +
                                         " bytes are in use by tensors of this process");
    }
  }
}

/// Whether there were any.
bool MemoryPool::release_free_blocks() {
  const auto has_none = [](const std::vector<Block>& blocks) { return blocks.empty(); };
  if (std::all_of(free_.begin(), free_.end(), has_none)) return false;
  stream_.synchronize();  // the device may still be at work on them
  for (std::vector<Block>& blocks : free_) {
    for (const Block& block : blocks) reserved_.remove(block->bytes());
    blocks.clear();
  }
  return true;
}

}  // namespace ein::gpu
