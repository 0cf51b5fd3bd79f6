// Tests of calls on ein::cuda. Without EIN_TEST_GPU, driver, NVRTC and NCCL are stand-ins that run
// the emitted kernels on the host; with it, they are the system's, and so is the GPU. A process
// that is started by one with stand-ins has the same.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "support/scratch.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Kernels of the stand-ins must not reach the user's cache.
  const ein::test::ScratchDirectory scratch;
  if (!std::getenv("EIN_TEST_GPU") && !std::getenv("FAKE_CUDA_DIRECTORY")) {
    ::setenv("EIN_CUDA_DRIVER", EIN_FAKE_CUDA, 1);
    ::setenv("EIN_NVRTC", EIN_FAKE_NVRTC, 1);
    ::setenv("EIN_NCCL", EIN_FAKE_NCCL, 1);
    ::setenv("FAKE_CUDA_DIRECTORY", scratch.path("").c_str(), 1);
    ::setenv("XDG_CACHE_HOME", scratch.path("cache").c_str(), 1);
  }
  return RUN_ALL_TESTS();
}
