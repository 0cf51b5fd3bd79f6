// The tests of meshes of GPUs (mesh_test.cpp) on processes that were launched, by a stand-in for
// NCCL; and what programs say where NCCL is missing or fails.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/command.hpp"
#ifdef EIN_MPI_PLUGIN
#include "support/mpirun.hpp"
#endif

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
  return test::outcome_of(
      {"launch", "-n", std::to_string(processes), "--", this_program(), "--gtest_filter=" + tests},
      variables);
}

/// By one process alone, which compiles the kernels of all.
void run_alone(const std::string& tests) {
  const std::string line = "'" + this_program() + "' --gtest_filter='" + tests + "' >&2";
  ASSERT_EQ(std::system(line.c_str()), 0);
}

TEST(DeviceMeshProcesses, OverNccl) {
  if (std::getenv("EIN_TEST_GPU")) return;  // scripts/gpu-check launches them on several GPUs
  run_alone("DeviceMesh.*");
  for (const int processes : {4, 2}) {
    const Outcome outcome = launched(processes, "DeviceMesh.*");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  }
}

#ifdef EIN_MPI_PLUGIN
TEST(DeviceMeshProcesses, OverNcclBesideMpi) {
  if (std::getenv("EIN_TEST_GPU")) return;
  const std::string tests = "DeviceMesh.Sums*:DeviceMesh.Bytes*";
  run_alone(tests);
  const std::string line = test::mpirun_line(
      "FAKE_CUDA=devices=4", "'" + this_program() + "' --gtest_filter='" + tests + "' >&2");
  EXPECT_EQ(std::system(line.c_str()), 0) << line;
}
#endif

/// Each process says what the test is told.
void expect_all_say(const Outcome& outcome, int processes, const std::string& part) {
  int times = 0;
  for (std::size_t at = 0; (at = outcome.text.find(part, at)) != std::string::npos; ++at) ++times;
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(times, processes) << outcome.text;
}

constexpr const char* a_sum = "DeviceMesh.SumsOfEveryType";

/// Of the steps of a run.
std::vector<double> losses(const std::string& log) {
  std::vector<double> found;
  std::ifstream lines(log);
  constexpr std::string_view key = "\"loss\": ";
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(key);
    if (at != line.npos) found.push_back(std::stod(line.substr(at + key.size())));
  }
  return found;
}

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

TEST(DeviceMeshProcesses, SlowTraining) {
  if (std::getenv("EIN_TEST_GPU")) return;
  const test::ScratchDirectory scratch;
  std::ofstream text(scratch.path("text.txt"));
  for (int i = 0; i < 200; ++i) text << "the quick brown fox " << i << " jumps\n";
  text.close();
  const auto train = [&](std::vector<std::string> words, const std::string& out,
                         const std::vector<std::string>& more,
                         std::vector<std::string> variables = {}) {
    words.insert(words.end(), {"train",
                               "--data",
                               scratch.path("text.txt"),
                               "--out",
                               scratch.path(out),
                               "--block-size",
                               "6",
                               "--batch-size",
                               "4",
                               "--n-layer",
                               "1",
                               "--n-head",
                               "2",
                               "--n-embd",
                               "8",
                               "--eval-iters",
                               "1",
                               "--warmup-iters",
                               "1",
                               "--max-iters",
                               "3",
                               "--eval-interval",
                               "3"});
    words.insert(words.end(), more.begin(), more.end());
    return test::outcome_of(words, variables);
  };
  const std::vector<std::string> launch{"launch", "-n", "2", "--", EIN_COMMAND},
      many{"--device", "cuda", "--mesh", "data=2", "--zero", "1"};
  const Outcome alone = train({}, "one", {});
  EXPECT_EQ(alone.exit_code, 0) << alone.text;
  const Outcome together = train(launch, "two", many);
  EXPECT_EQ(together.exit_code, 0) << together.text;
  EXPECT_NE(together.text.find("all_reduce over data"), std::string::npos) << together.text;
  const std::vector<double> wanted = losses(scratch.path("one/log.jsonl")),
                            found = losses(scratch.path("two/log.jsonl"));
  ASSERT_EQ(wanted.size(), 3u);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5) << i;
  const Outcome none = train(launch, "none", many, {"EIN_NCCL=/no/libnccl.so.2"});
  expect_all_say(none, 2, "ein: nccl: process 0: /no/libnccl.so.2: cannot open");
}

}  // namespace
}  // namespace ein
