// What a process keeps from call to call. Each table is there whole or not at all, whatever fails
// while it grows: tests/failures.cpp lets everything fail in the calls that are named here.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "support/all_calls.hpp"
#include "support/project.hpp"
#include "support/scratch.hpp"

namespace ein {
namespace {

constexpr std::string_view constant = "",  // made once, and never changed
    device = "device";                     // of a GPU, or of what stands in for one

const std::map<std::string, std::string_view> call_that_changes{
    {"codegen/vocabulary.cpp", constant},
    {"src/cost/hardware.cpp", constant},
    {"src/cpu/backend.cpp", constant},
    {"src/machine/cache.cpp", constant},
    {"src/cpu/gemm.cpp", constant},
    {"src/cpu/level.cpp", constant},
    {"src/cpu/level/gemm.cpp", constant},
    {"src/machine/parallel.cpp", "set_num_threads"},
    {"src/cpu/row_code.cpp", "norms"},
    {"src/cuda/backend.cpp", device},
    {"src/cuda/cubin_cache.cpp", constant},
    {"src/cuda/driver.cpp", constant},
    {"src/cuda/gpu.cpp", device},
    {"src/cuda/nccl.cpp", device},
    {"src/cuda/nvrtc.cpp", constant},
    {"src/cuda/settings.hpp", constant},
    {"src/graph/after_pass.cpp", constant},
    {"src/runtime/mesh.cpp", constant},
    {"src/runtime/plan_cache.cpp", "product in blocks"},
    {"src/runtime/random_state.cpp", "random numbers"},
    {"src/runtime/range_plan.cpp", "norms"},
    {"src/tensor/kept.cpp", "a new compiled function"},
    {"src/machine/processor.cpp", constant},
    {"src/size/size.cpp", "norms"},
    {"src/tensor/storage.cpp", "sums"},
    {"src/machine/system.cpp", constant},
    {"src/tensor/tensor.cpp", constant},
    {"src/machine/thread_end.cpp", constant},
};

TEST(ProcessTables, EachHasACallThatChangesIt) {
  for (const auto& [file, name] : call_that_changes) {
    const bool is_call =
        std::any_of(std::begin(test::all_calls), std::end(test::all_calls),
                    [&](const test::NamedCheck& call) { return call.name == name; });
    EXPECT_TRUE(is_call || name == constant || name == device) << file << ": " << name;
  }
}

TEST(ProcessTables, AllAreListed) {
  namespace fs = std::filesystem;
  using test::project;
  std::map<std::string, bool> found;
  for (const char* const folder : {"src", "grammar", "codegen"}) {
    for (const auto& entry : fs::recursive_directory_iterator(project / folder)) {
      if (!entry.is_regular_file() || entry.path().filename() == "fork.hpp") continue;
      const std::string text = test::read_bytes(entry.path().string());
      if (text.find("made_once(") == std::string::npos &&
          text.find("made_once_with_lock<") == std::string::npos)
        continue;
      const std::string file = fs::relative(entry.path(), project).string();
      found[file] = true;
      EXPECT_TRUE(call_that_changes.contains(file)) << file << " keeps something";
    }
  }
  for (const auto& [file, name] : call_that_changes) EXPECT_TRUE(found[file]) << file;
}

}  // namespace
}  // namespace ein
