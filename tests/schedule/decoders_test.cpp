// Whole decoders: their groups and schedules executed in double precision against the nests that
// they stand for, and what their checkpoints hold. `make attack` runs others as machine code.
#include "support/decoder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <optional>

#include "cpu/row_code.hpp"
#include "oracle/execute.hpp"
#include "passes/find_attention.hpp"
#include "passes/memory_plan.hpp"
#include "passes/pad_rows.hpp"
#include "schedule/cpu_choose.hpp"
#include "schedule/cpu_group_nests.hpp"
#include "schedule/gpu_choose.hpp"
#include "schedule/gpu_group_rows.hpp"
#include "support/attention_cases.hpp"
#include "support/grouped_programs.hpp"
#include "support/random_nests.hpp"
#include "support/seeds.hpp"

namespace ein::test {
namespace {

/// A decoder of sizes that plain loops can follow, without random numbers and integers.
Decoder small_decoder(std::uint64_t seed) {
  Decoder d = make_decoder(seed);
  std::mt19937_64 random(seed);
  d.batch = 1 + static_cast<std::int64_t>(random() % 2);
  d.positions = 4 + static_cast<std::int64_t>(random() % 12);
  d.memory = d.memory > 0 ? 4 + static_cast<std::int64_t>(random() % 12) : 0;
  d.heads = d.key_heads = 1 + static_cast<std::int64_t>(random() % 2);
  d.depth = 2 + static_cast<std::int64_t>(random() % 5);
  d.words = 0;
  d.dropout = d.updates = d.autocast = false;
  d.dtype = DType::f32;
  return d;
}

/// The decoder's step, grouped by `group(program, kept)`.
template <class Group>
CompiledProgram step_of(const Decoder& decoder, const Group& group) {
  const DecoderModel model(decoder, decoder.dtype);
  return compiled(
      model.arguments(0), [&](std::span<const Tensor> x) { return model.step(x[0], x[1], x[2]); },
      group);
}
CompiledProgram step_for(const Decoder& decoder, const Target& target) {
  return step_of(decoder, [&](Program& program, std::span<const int> kept) {
    group_for(target, program, kept);
  });
}

/// Runs the schedule that choose_for(group) gives, or else the nests, of each group in order, and
/// compares results with those of the program as it was lowered.
template <class Choose>
void expect_results(const Decoder& decoder, const CompiledProgram& step, unsigned seed,
                    const Choose& choose_for) {
  const Program& program = step.program;
  ASSERT_NO_THROW(verify(program)) << to_string(program);
  const CompiledProgram plain = step_of(decoder, [](Program&, std::span<const int>) {});
  DoubleBuffers want = buffers_of(plain), got = buffers_of(step);
  for (const LoopNest& nest : plain.program.nests) execute(nest, want);
  std::vector<Size> elements;
  for (const Program::Buffer& buffer : program.buffers) elements.push_back(buffer.elements);
  for (const Program::Group& group : program.groups) {
    const std::optional<Schedule> schedule = choose_for(group);
    if (schedule) {
      ASSERT_NO_THROW(verify(*schedule, elements)) << to_string(*schedule);
      ASSERT_NO_THROW(execute(*schedule, got, seed)) << to_string(*schedule);
    } else {
      for (std::size_t n = group.first; n < group.first + group.count; ++n)
        execute(program.nests[n], got);
    }
  }
  ASSERT_EQ(program.results.size(), plain.program.results.size());
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    const auto &to = got[static_cast<std::size_t>(program.results[r].buffer)],
               &from = want[static_cast<std::size_t>(plain.program.results[r].buffer)];
    ASSERT_EQ(to.size(), from.size());
    for (std::size_t i = 0; i < from.size(); ++i)
      ASSERT_NEAR(to[i], from[i], 1e-9 * std::max(1.0, std::abs(from[i])))
          << "result " << r << "[" << i << "]\n"
          << to_string(program);
  }
}

/// Whether grouping has cut a reduction in two before attention that is not the first.
bool has_attention_behind_halves(const Program& program) {
  bool is_first = true, halves = false;
  for (const Program::Group& group : program.groups) {
    if (group.attention() && !is_first && halves) return true;
    is_first &= group.attention() == nullptr;
    halves |= program.nests[group.first].joins;
  }
  return false;
}

TEST(Decoders, SchedulesForASmallTarget) {
  std::size_t several = 0, groups = 0, behind_added = 0;
  for_seeds(60, [&](unsigned seed) {
    const Decoder decoder = small_decoder(seed);
    SCOPED_TRACE(to_string(decoder));
    Target target = with_tiles(unit_steps_target(), 3 + seed % 7, 2 + seed / 7 % 7);
    target.least_heads = seed % 2 == 0 ? 1 : 1000;
    const CompiledProgram step = step_for(decoder, target);
    expect_results(decoder, step, seed, [&](const Program::Group& group) {
      groups += group.count > 1;
      return std::optional(choose(step.program, group, target));
    });
    several += attentions(step.program).size() > 2;
    behind_added += has_attention_behind_halves(step.program);
  });
  std::cout << several << " of several attentions, " << behind_added << " of them behind halves, "
            << groups << " groups\n";
  EXPECT_GE(several, test::at_least(20));
  EXPECT_GE(behind_added, test::at_least(5));
  EXPECT_GE(groups, test::at_least(300));
}

CompiledProgram step_for(const Decoder& decoder, const GpuTarget& target) {
  return step_of(decoder, [&](Program& program, std::span<const int> kept) {
    find_attention(program, kept, {}, [](const Attention&) { return true; });
    group_rows(program, target, kept);
    pad_rows(program, kept);
  });
}

TEST(Decoders, SchedulesForASmallGpu) {
  std::size_t several = 0, rows = 0;
  for_seeds(60, [&](unsigned seed) {
    const Decoder decoder = small_decoder(seed);
    SCOPED_TRACE(to_string(decoder));
    const GpuTarget target = small_gpu();
    const CompiledProgram step = step_for(decoder, target);
    expect_results(decoder, step, seed, [&](const Program::Group& group) {
      rows += group.rows() != nullptr;
      return group.rows() ? std::optional(choose(step.program, group, target)) : std::nullopt;
    });
    several += attentions(step.program).size() > 2;
  });
  std::cout << several << " of several attentions, " << rows << " groups of rows\n";
  EXPECT_GE(several, test::at_least(20));
  EXPECT_GE(rows, test::at_least(300));
}

TEST(Decoders, AttentionOfOtherNestsIsFound) {
  const Decoder decoder{.layers = 2, .heads = 2, .key_heads = 2};
  Program program = step_for(decoder, with_tiles(unit_steps_target(), 4, 4)).program;
  ASSERT_NO_THROW(verify(program));
  std::vector<std::size_t> found;
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    if (program.groups[g].attention()) found.push_back(g);
  }
  ASSERT_EQ(found.size(), 4u);  // forward 1, forward 2, backward 2, backward 1
  for (const std::size_t first : {0, 2}) {
    Program other = program;
    std::swap(other.groups[found[first]].form, other.groups[found[first + 1]].form);
    EXPECT_THROW(verify(other), std::logic_error) << first;
  }
}

/// Memory of the values in between, but for the inputs of the checkpoints of so many layers.
template <class AnyTarget>
Size beside_checkpoints(Decoder decoder, std::int64_t layers, const AnyTarget& target) {
  decoder.layers = layers;
  const ProgramMemory memory = plan_memory(step_for(decoder, target).program);
  std::vector<Lifetime> lives;
  for (const ProgramMemory::Intermediate& value : memory.intermediate) lives.push_back(value.life);
  const Size inputs = layers * decoder.batch * decoder.positions * decoder.width() *
                      static_cast<std::int64_t>(size_of(decoder.dtype));
  return std::max<Size>(plan_arena(lives).bytes, inputs) - inputs;
}

template <class AnyTarget>
void expect_one_layer(const Decoder& decoder, const AnyTarget& target) {
  const Size one = beside_checkpoints(decoder, 1, target);
  for (const int layers : {2, 3, 4, 6}) {
    // Values may fit each other's places in another way.
    EXPECT_LE(beside_checkpoints(decoder, layers, target), one + one / 50 + 2048) << layers;
  }
}

TEST(Decoders, CheckpointsHoldTheirInputsAndOneLayer) {
  for_seeds(40, [&](unsigned seed) {
    Decoder decoder = make_decoder(seed);
    decoder.checkpoint = Checkpoint::layers;
    decoder.residual = true;
    decoder.updates = false;
    decoder.of_input = true;  // else the first layer has less to do
    SCOPED_TRACE(to_string(decoder));
    expect_one_layer(decoder, host::RowCode::target());
    expect_one_layer(decoder, GpuTarget{});
  });
}

}  // namespace
}  // namespace ein::test
