#include "runtime/scratch.hpp"

#include <utility>

#include "backend/backend.hpp"
#include "machine/fork.hpp"

namespace ein::engine {

std::shared_ptr<Storage> Scratch::take(std::size_t bytes, Device device) {
  {
    const NoForkLock lock(mutex_);
    const bool fits = kept_ && kept_->bytes() >= bytes && kept_->device() == device;
    std::shared_ptr<Storage> block = std::exchange(kept_, nullptr);
    if (fits) return block;
  }  // what was too small is freed first
  return backend_of(device).allocate(bytes);
}

void Scratch::give_back(std::shared_ptr<Storage> block) {
  const NoForkLock lock(mutex_);
  if (!kept_ || kept_->bytes() < block->bytes()) kept_.swap(block);
}

void Scratch::release() {
  const NoForkLock lock(mutex_);
  kept_.reset();
}

}  // namespace ein::engine
