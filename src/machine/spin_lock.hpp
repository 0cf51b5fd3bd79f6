// SpinLock: a lock for a few instructions.
#pragma once

#include <atomic>
#include <thread>

namespace ein {

/// As std::mutex, for std::lock_guard. Taking a free one costs a fraction of what a mutex does,
/// which counts where a whole call takes 200 ns; what waits does so busily, so nothing that may
/// block belongs under it.
class SpinLock {
 public:
  void lock() {
    while (taken_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};

}  // namespace ein
