// What a user asks of code that is made for GPUs.
#pragma once

#include <atomic>
#include <string>

#include "machine/environment.hpp"
#include "machine/fork.hpp"

namespace ein::gpu {

struct Settings {
  std::atomic<bool> tf32 = false;
  std::atomic<bool> tunes = environment(Variable::tune) == "1";
};

inline Settings& settings() {
  return made_once([] { return Settings(); });
}

}  // namespace ein::gpu
