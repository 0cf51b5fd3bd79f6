// The tests of meshes, braces on them, their checkpoints and pipelines (mesh_test.cpp,
// mesh_windows_test.cpp, mesh_checkpoint_test.cpp, pipeline_test.cpp) on processes that share
// memory, and on those of MPI.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "support/command.hpp"
#ifdef EIN_MPI_PLUGIN
#include "support/mpirun.hpp"
#endif

namespace ein {
namespace {

/// The program that runs: all tests are in it.
std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

constexpr const char* tests_of_meshes =
    "--gtest_filter=MeshTest.*:MeshWindowsTest.*:MeshCheckpointTest.*:PipelineTest.*";

/// All of them run there, also where this program is one of several that share the tests.
void run_all_there() {
  for (const char* name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_FILTER"})
    unsetenv(name);
}

TEST(MeshProcessesTest, OverSharedMemory) {
  run_all_there();
  const test::Outcome outcome = test::outcome_of(
      {"launch", "-n", "4", "--", this_program(), tests_of_meshes}, {"EIN_SEEDS=40"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
}

#ifdef EIN_MPI_PLUGIN
TEST(MeshProcessesTest, OverMpi) {
  run_all_there();
  const std::string line =
      test::mpirun_line("EIN_SEEDS=10 LD_PRELOAD='" EIN_MPI_COUNTS "'",
                        "'" + this_program() + "' '" + tests_of_meshes + "' >/dev/null 2>&1");
  EXPECT_EQ(std::system(line.c_str()), 0) << line;
}
#endif

}  // namespace
}  // namespace ein
