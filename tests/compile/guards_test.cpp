// For which lengths a program of fixed functions holds: the guards of its trace, and those that
// passes and schedules add for a CPU and for a GPU. None depends on the machine that runs the test.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/device.hpp>
#include <ein/ein.hpp>
#include "codegen/emit.hpp"
#include "compile/passes.hpp"
#include "runtime/recording.hpp"
#include "schedule/cpu_choose.hpp"
#include "support/functions_of_lengths.hpp"
#include "support/grouped_programs.hpp"
#include "support/project.hpp"
#include "support/scratch.hpp"

namespace ein {
namespace {

using engine::Job, engine::Recording;

/// Code for rows of 32 bytes, and a cache of a MiB.
Target fixed_target() {
  const Target small = test::small_target();
  Target target;
  target.has = small.has;
  target.combines = small.combines;
  target.reads = small.reads;
  target.writes = small.writes;
  target.combines_together = small.combines_together;
  target.register_bytes = 32;
  return target;
}

std::vector<Tensor> results_of(const void* function, std::span<const Tensor> arguments) {
  return {(*static_cast<const std::function<Tensor(const Tensor&)>*>(function))(arguments[0])};
}

/// Beside those of one size alone: functions whose passes ask more.
std::vector<test::FunctionOfLengths> functions() {
  std::vector<test::FunctionOfLengths> all = test::functions_of_lengths();
  all.emplace_back("softmax of scores", [](const Tensor& x) {
    return softmax(einsum(x, x, "b s c, b t c -> b s t") * 0.125, "b s [t]");
  });
  all.emplace_back("attention", [](const Tensor& x) {
    const Tensor scores = softmax(einsum(x, x, "b s c, b t c -> b s t") * 0.125, "b s [t]");
    return einsum(scores, x, "b s t, b t c -> b s c");
  });
  all.emplace_back("distances", [](const Tensor& x) {
    const auto apart = [](const Tensor& a, const Tensor& b) { return abs(a - b); };
    return map(x, x, "b s c, b t c -> b s t", apart, "sum");
  });
  return all;
}

/// The guards of one function for 3 × 200 × 64 numbers, of which the first two are open.
std::string guards_of(const test::FunctionOfLengths& function) {
  using Text = engine::ArgumentTypes::Text;
  const std::vector<Text> texts{"b s c=64"};
  const engine::ArgumentTypes types(texts);
  const std::vector<Tensor> arguments{zeros({3, 200, 64})};
  const Recording recording(arguments, &types, results_of, &function.second);
  const SizeValues lengths = types.open_sizes(arguments);
  const auto of = [&](const char* what, const SizeGuards& guards) {
    return std::string("  ") + what + ": " + guards.to_string() + "\n";
  };
  const auto guards_for = [&](Device device, const auto& decide) {
    const SizeScope scope(lengths, SizeScope::Reading::is_guard, recording.guards);
    const Job job = recording.job(device);
    Program program = engine::lowered(recording.graph, job).program;
    decide(program, job);
    return scope.guards();
  };
  std::string text = std::string(function.first) + "\n" + of("trace", recording.guards);
  text += of("CPU", guards_for(cpu, [](Program& program, const Job&) {
               const Target target = fixed_target();
               test::group_for(target, program, result_buffers(program));
               for (const Program::Group& group : program.groups) choose(program, group, target);
             }));
  text += of("GPU", guards_for(cuda(0), [](Program& program, const Job& job) {
               engine::group(program, job);
               for (const Program::Group& group : program.groups) codegen::emit(program, group);
             }));
  return text;
}

constexpr const char* variable = "EIN_TEST_GUARDS";  // in a process of its own: where they go

/// Formulas are written in the order in which a process met their sizes, so this one starts a new
/// one. EIN_WRITE_GOLDEN=1 writes what the test expects.
TEST(Guards, AreWhatTheyWere) {
  if (const char* const path = std::getenv(variable)) {
    std::string text = "lengths: b = 3, s = 200\n";
    for (const test::FunctionOfLengths& function : functions()) text += guards_of(function);
    return test::write_bytes(path, text);
  }
  const test::ScratchDirectory folder;
  const std::string made = folder.path().string() + "/guards.txt",
                    self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX " +
                              std::string(variable) + "='" + made + "' '" + self +
                              "' --gtest_filter=Guards.AreWhatTheyWere >'" + made + ".log'";
  ASSERT_EQ(std::system(command.c_str()), 0) << test::read_bytes(made + ".log");
  const std::string text = test::read_bytes(made);
  const std::string path = (test::project / "tests/golden/guards.txt").string();
  if (std::getenv("EIN_WRITE_GOLDEN")) test::write_bytes(path, text);
  EXPECT_EQ(test::read_bytes(path), text) << path;
}

}  // namespace
}  // namespace ein
