// What a user asks of code that is made for GPUs.
#pragma once

#include <atomic>
#include <string>

#include "codegen/shared_library.hpp"

namespace ein::codegen {

struct Settings {
  std::atomic<bool> tf32 = false;
  std::atomic<bool> tunes = environment("EIN_TUNE") == "1";
};

inline Settings& settings() {
  static Settings settings;
  return settings;
}

}  // namespace ein::codegen
