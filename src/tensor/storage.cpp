#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

#include <ein/error.hpp>
#include <ein/memory.hpp>
#include <ein/tensor.hpp>

namespace ein {
namespace {

constexpr std::size_t alignment = 64;

/// Blocks given back are kept by size class, four classes to each doubling, because fresh memory from the
/// system costs a page fault per 4 KiB. Sanitizers see every allocation instead.
class BlockCache {
 public:
  std::byte* take(std::size_t bytes) {
    const std::size_t index = class_of(bytes);
    {
      const std::lock_guard lock(mutex_);
      std::vector<std::byte*>& blocks = free_[index];
      if (!blocks.empty()) {
        std::byte* block = blocks.back();
        blocks.pop_back();
        cached_ -= size_of_class(index);
        return block;
      }
    }
    void* block = std::aligned_alloc(alignment, size_of_class(index));
    if (!block) {
      drop_all();
      block = std::aligned_alloc(alignment, size_of_class(index));
    }
    if (!block) {
      throw Error(ErrorKind::memory, "cannot allocate " + std::to_string(bytes) + " bytes");
    }
    return static_cast<std::byte*>(block);
  }

  void give_back(std::byte* block, std::size_t bytes) {
    const std::size_t index = class_of(bytes);
    const std::size_t size = size_of_class(index);
    if (keeps_blocks) {
      const std::lock_guard lock(mutex_);
      if (cached_ + size <= most_cached) {
        cached_ += size;
        free_[index].push_back(block);
        return;
      }
    }
    std::free(block);
  }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool keeps_blocks = false;
#else
  static constexpr bool keeps_blocks = true;
#endif
  static constexpr std::size_t most_cached = std::size_t{1} << 30;

  // Class 4·e + q holds blocks of (4 + q)/4 · 64 · 2^e bytes.
  static std::size_t class_of(std::size_t bytes) {
    const std::size_t lines = (bytes + alignment - 1) / alignment;
    if (lines <= 4) return lines <= 1 ? 0 : lines == 2 ? 4 : lines == 3 ? 6 : 8;
    const auto exponent = static_cast<std::size_t>(std::bit_width(lines - 1) - 1);
    const std::size_t quarter = (lines - 1 - (std::size_t{1} << exponent)) * 4 >> exponent;
    return 4 * exponent + quarter + 1;
  }
  static std::size_t size_of_class(std::size_t index) {
    const std::size_t quarters = (4 + index % 4) << (index / 4);
    return (quarters + 3) / 4 * alignment;
  }
  void drop_all() {
    const std::lock_guard lock(mutex_);
    for (std::vector<std::byte*>& blocks : free_) {
      for (std::byte* block : blocks) std::free(block);
      blocks.clear();
    }
    cached_ = 0;
  }

  std::mutex mutex_;
  std::array<std::vector<std::byte*>, 4 * 64> free_;
  std::size_t cached_ = 0;
};

/// Bytes asked for and not given back; and the most there were.
std::atomic<std::size_t> allocated_bytes{0};
std::atomic<std::size_t> most_allocated_bytes{0};

void count_allocation(std::size_t bytes) {
  const std::size_t now = allocated_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t most = most_allocated_bytes.load(std::memory_order_relaxed);
  while (now > most && !most_allocated_bytes.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

/// Never destroyed: tensors with static storage duration may outlive any other static object.
BlockCache& block_cache() {
  static BlockCache& cache = *new BlockCache;
  return cache;
}

}  // namespace

std::shared_ptr<Storage> Storage::allocate(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(INT64_MAX)) {
    throw Error(ErrorKind::memory, "cannot allocate " + std::to_string(bytes) + " bytes");
  }
  std::byte* block = block_cache().take(bytes);
  count_allocation(bytes);
  return std::make_shared<Storage>(block, bytes, nullptr, false);
}

std::shared_ptr<Storage> Storage::wrap(void* data, std::size_t bytes, std::shared_ptr<void> owner, bool read_only) {
  // Memory that nobody needs to keep alive: any owner but none, which means allocate()'s.
  if (!owner) owner = std::shared_ptr<void>(std::shared_ptr<void>(), &block_cache());
  return std::make_shared<Storage>(static_cast<std::byte*>(data), bytes, std::move(owner), read_only);
}

Storage::~Storage() {
  if (owner_) return;
  allocated_bytes.fetch_sub(bytes_, std::memory_order_relaxed);
  block_cache().give_back(data_, bytes_);
}

std::size_t memory_allocated(Device) { return allocated_bytes; }
std::size_t max_memory_allocated(Device) { return most_allocated_bytes; }
void reset_max_memory_allocated(Device) { most_allocated_bytes = allocated_bytes.load(); }

}  // namespace ein
