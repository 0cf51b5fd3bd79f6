// What a user asks of code that is made for GPUs.
#pragma once

#include <atomic>
#include <string>

#include "tensor/fork.hpp"
#include "tensor/shared_library.hpp"

namespace ein::gpu {

struct Settings {
  std::atomic<bool> tf32 = false;
  std::atomic<bool> tunes = environment("EIN_TUNE") == "1";
};

inline Settings& settings() {
  return made_once([] { return Settings(); });
}

}  // namespace ein::gpu
