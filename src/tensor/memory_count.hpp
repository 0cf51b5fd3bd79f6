// MemoryCount: bytes that are alive, and the most there were.
#pragma once

#include <atomic>
#include <cstddef>

namespace ein {

/// Thread-safe.
class MemoryCount {
 public:
  void add(std::size_t bytes) {
    const std::size_t now = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::size_t most = most_.load(std::memory_order_relaxed);
    while (now > most && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
  }
  void remove(std::size_t bytes) { live_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::size_t live() const { return live_; }
  std::size_t most() const { return most_; }
  void reset_most() { most_ = live_.load(); }

 private:
  std::atomic<std::size_t> live_{0}, most_{0};
};

/// Of the host.
struct HostMemory {
  MemoryCount count;  // of what tensors asked for
  MemoryCount reserved;
};
HostMemory& host_memory();
/// Gives blocks that are kept to be used again back to the system.
void release_host_memory();

}  // namespace ein
