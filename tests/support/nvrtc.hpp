// For tests that compile kernels for a GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cuda/nvrtc.hpp"

namespace ein::test {

/// Why nothing can be compiled for an architecture such as sm_90a; nothing if it can.
inline std::string missing_nvrtc_for(const std::string& arch) {
  std::string why;
  if (!gpu::nvrtc_is_available(&why)) return why;
  const std::vector<int> known = gpu::nvrtc_architectures();
  const bool knows =
      std::find(known.begin(), known.end(), std::stoi(arch.substr(3))) != known.end();
  return knows ? "" : "this NVRTC does not know " + arch;
}

}  // namespace ein::test

/// These skip a test, and say why.
#define SKIP_WITHOUT_NVRTC() \
  if (std::string why_not; !ein::gpu::nvrtc_is_available(&why_not)) GTEST_SKIP() << why_not
#define SKIP_WITHOUT_NVRTC_FOR(arch)                                                    \
  if (const std::string why_not = ein::test::missing_nvrtc_for(arch); !why_not.empty()) \
  GTEST_SKIP() << why_not
