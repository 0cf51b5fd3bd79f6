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

/// So many processes on a machine of so many GPUs, one for each unless it is said.
Outcome launched(int processes, const std::string& tests, std::vector<std::string> variables = {},
                 int devices = 0) {
  for (const char* name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_FILTER"})
    unsetenv(name);
  variables.push_back("FAKE_CUDA=devices=" + std::to_string(devices > 0 ? devices : processes));
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

/// Each process says what the test is told.
void expect_all_say(const Outcome& outcome, int processes, const std::string& part) {
  int times = 0;
  for (std::size_t at = 0; (at = outcome.text.find(part, at)) != std::string::npos; ++at) ++times;
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(times, processes) << outcome.text;
}

constexpr const char* a_sum = "DeviceMesh.SumsOfEveryType";

TEST(DeviceMeshProcesses, WithoutNccl) {
  if (std::getenv("EIN_TEST_GPU")) return;
  const Outcome outcome = launched(2, a_sum, {"EIN_NCCL=/no/libnccl.so.2"});
  expect_all_say(outcome, 2, "nccl: process 0: /no/libnccl.so.2: cannot open shared object file");
  expect_all_say(outcome, 2, "help: pip install nvidia-nccl-cu13");
  expect_all_say(launched(2, a_sum, {"EIN_NCCL=" EIN_FAKE_CUDA}), 2, "lacks ncclGetErrorString");
}

TEST(DeviceMeshProcesses, WhatNcclRefuses) {
  if (std::getenv("EIN_TEST_GPU")) return;
  expect_all_say(launched(2, a_sum, {"FAKE_NCCL=ncclGetUniqueId=3"}), 2,
                 "nccl: process 0: ncclGetUniqueId: error of the stand-in; as the test wants");
  expect_all_say(launched(2, a_sum, {"FAKE_NCCL=ncclAllReduce=3"}), 2,
                 "nccl: all_reduce: error of the stand-in; as the test wants");
  expect_all_say(launched(2, a_sum, {"FAKE_NCCL=ncclCommGetAsyncError=6"}), 2,
                 "nccl: all_reduce, before this one: remote process exited");
  expect_all_say(launched(2, a_sum, {}, 1), 2, "each process has a GPU of its own");
}

}  // namespace
}  // namespace ein
