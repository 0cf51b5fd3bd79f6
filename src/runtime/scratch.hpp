// Memory that runs of compiled functions use by turns.
#pragma once

#include <memory>
#include <mutex>

#include <ein/tensor.hpp>

namespace ein::engine {

/// One block of memory for the intermediate values of all programs of a function. Runs at the same
/// time each get a block, of which the largest is kept.
class Scratch {
 public:
  /// At least `bytes` bytes, for the caller alone until it gives them back.
  std::shared_ptr<Storage> take(std::size_t bytes, Device device);
  void give_back(std::shared_ptr<Storage> block);
  /// Frees what no run uses.
  void release();

 private:
  std::mutex mutex_;
  std::shared_ptr<Storage> kept_;
};

}  // namespace ein::engine
