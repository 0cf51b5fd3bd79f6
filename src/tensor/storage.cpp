#include <array>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include <ein/error.hpp>
#include <ein/tensor.hpp>
#include "machine/fork.hpp"
#include "machine/spin_lock.hpp"
#include "machine/system.hpp"
#include "tensor/memory_count.hpp"
#include "tensor/size_class.hpp"

namespace ein {

HostMemory& host_memory() {
  static HostMemory memory;  // trivially destroyed: it serves until the end
  return memory;
}

namespace {

/// Blocks given back are kept by size class, four classes to each doubling, because fresh memory
/// from the system costs a page fault per 4 KiB. Sanitizers see every allocation instead.
class BlockCache {
 public:
  std::byte* take(std::size_t bytes) {
    const std::size_t index = size_class::of(bytes);
    {
      const std::lock_guard lock(mutex);
      if (Unused* const block = free_[index]) {
        free_[index] = block->next;
        cached_ -= size_class::bytes(index);
        return reinterpret_cast<std::byte*>(block);
      }
    }
    std::byte* block = allocate(size_class::bytes(index));
    if (!block) {
      drop_all();
      block = allocate(size_class::bytes(index));
    }
    if (!block) {
      throw Error(ErrorKind::memory, "cannot allocate " + std::to_string(bytes) + " bytes");
    }
    host_memory().reserved.add(size_class::bytes(index));
    return block;
  }

  void give_back(std::byte* block, std::size_t bytes) {
    const std::size_t index = size_class::of(bytes);
    if (keeps_blocks && size_class::bytes(index) <= most_cached) {
      if (keep(block, index)) return;
      drop_all();  // blocks of sizes that are perhaps no longer used make room
      if (keep(block, index)) return;
    }
    host_memory().reserved.remove(size_class::bytes(index));
    std::free(block);
  }

  void drop_all() {
    std::array<Unused*, size_class::count> unused{};
    {
      const std::lock_guard lock(mutex);
      unused.swap(free_);
      host_memory().reserved.remove(cached_);
      cached_ = 0;
    }
    for (Unused* block : unused) {
      while (block) std::free(std::exchange(block, block->next));
    }
  }

  SpinLock mutex;

 private:
  /// What a block that is kept begins with: to give one back takes no memory.
  struct Unused {
    Unused* next;
  };
  static_assert(sizeof(Unused) <= size_class::bytes(0));

  /// False where there is no room.
  bool keep(std::byte* block, std::size_t index) {
    const std::size_t size = size_class::bytes(index);
    const std::lock_guard lock(mutex);
    if (cached_ + size > most_cached) return false;
    cached_ += size;
    free_[index] = new (block) Unused{free_[index]};
    return true;
  }

  /// Large blocks on large pages, where the system has them: a page fault for each 4 KiB of fresh
  /// memory takes longer than to fill it, and few addresses fit what a processor remembers of small
  /// pages.
  static std::byte* allocate(std::size_t bytes) {
    constexpr std::size_t page = std::size_t{2} << 20;
    const bool is_large = bytes >= 2 * page;
    void* const block = std::aligned_alloc(is_large ? page : size_class::alignment,
                                           is_large ? (bytes + page - 1) / page * page : bytes);
    if (block && is_large) system::prefer_large_pages(block, bytes);
    return static_cast<std::byte*>(block);
  }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool keeps_blocks = false;
#else
  static constexpr bool keeps_blocks = true;
#endif
  static constexpr std::size_t most_cached = std::size_t{1} << 30;

  std::array<Unused*, size_class::count> free_{};
  std::size_t cached_ = 0;
};

BlockCache& block_cache() { return made_once_with_lock<BlockCache, StaticLock::host_memory>(); }

}  // namespace

std::shared_ptr<Storage> Storage::allocate(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(INT64_MAX)) {
    throw Error(ErrorKind::memory, "cannot allocate " + std::to_string(bytes) + " bytes");
  }
  std::byte* block = block_cache().take(bytes);
  try {
    auto storage = std::make_shared<Storage>(block, bytes, nullptr, false);
    host_memory().count.add(bytes);
    return storage;
  } catch (...) {
    block_cache().give_back(block, bytes);
    throw;
  }
}

std::shared_ptr<Storage> Storage::wrap(void* data, std::size_t bytes, std::shared_ptr<void> owner,
                                       bool read_only) {
  // Memory that nobody needs to keep alive: any owner but none, which means allocate()'s.
  if (!owner) owner = std::shared_ptr<void>(std::shared_ptr<void>(), &block_cache());
  return std::make_shared<Storage>(static_cast<std::byte*>(data), bytes, std::move(owner),
                                   read_only);
}

Storage::~Storage() {
  if (owner_) return;
  host_memory().count.remove(bytes_);
  block_cache().give_back(data_, bytes_);
}

void release_host_memory() { block_cache().drop_all(); }

}  // namespace ein
