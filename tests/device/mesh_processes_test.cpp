// The tests of meshes of GPUs (mesh_test.cpp) on processes that were launched, by a stand-in for NCCL;
// and what programs say where NCCL is missing or fails.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/command.hpp"

namespace ein {
namespace {

using test::Outcome;

/// All tests are in the program that runs.
std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

/// So many processes with a GPU each, and the kernels that this one has.
Outcome launched(int processes, const std::string& tests, std::vector<std::string> variables = {}) {
  for (const char* name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_FILTER"})
    unsetenv(name);
  variables.push_back("FAKE_CUDA=devices=" + std::to_string(processes));
  variables.push_back("XDG_CACHE_HOME=" + std::string(std::getenv("XDG_CACHE_HOME")));
  return test::outcome_of({"launch", "-n", std::to_string(processes), "--", this_program(),
                           "--gtest_filter=" + tests},
                          variables);
}

TEST(DeviceMeshProcesses, OverNccl) {
  if (std::getenv("EIN_TEST_GPU")) return;  // scripts/gpu-check launches them on several GPUs
  // One process compiles the kernels of all.
  const std::string alone = "'" + this_program() + "' --gtest_filter='DeviceMesh.*' >&2";
  ASSERT_EQ(std::system(alone.c_str()), 0);
  for (const int processes : {4, 2}) {
    const Outcome outcome = launched(processes, "DeviceMesh.*");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  }
}

}  // namespace
}  // namespace ein
