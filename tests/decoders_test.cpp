// Whole decoders: their groups and schedules executed in double precision against the nests that
// they stand for, and what their checkpoints hold. `make attack` runs others as machine code.
#include "support/decoder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include <ein/compile.hpp>
#include "passes/find_attention.hpp"
#include "schedule/choose.hpp"
#include "schedule/execute.hpp"
#include "schedule/group_nests.hpp"
#include "support/attention_cases.hpp"
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

Target target_with_tiles(std::int64_t queries, std::int64_t keys) {
  Target target = small_target();
  target.reads = [](DType, Size step, DType) { return step == 0 || step == 1; };
  target.queries_in_tile = queries, target.keys_in_tile = keys;
  target.least_score_bytes = 1;
  return target;
}

CompiledProgram grouped(const Decoder& decoder, const Target& target) {
  const DecoderModel model(decoder, decoder.dtype);
  return compiled(
      model.arguments(0), [&](std::span<const Tensor> x) { return model.step(x[0], x[1], x[2]); },
      [&](Program& program, std::span<const int> kept) {
        find_attention(program, kept, {},
                       [&](const Attention& attention) { return is_for_tiles(attention, target); });
        group_nests(program, target, kept);
      });
}

TEST(Decoders, SchedulesForASmallTarget) {
  std::size_t several = 0, groups = 0;
  for_seeds(60, [&](unsigned seed) {
    const Decoder decoder = small_decoder(seed);
    SCOPED_TRACE(to_string(decoder));
    Target target = target_with_tiles(3 + seed % 7, 2 + seed / 7 % 7);
    target.least_heads = seed % 2 == 0 ? 1 : 1000;
    const CompiledProgram step = grouped(decoder, target);
    const Program& program = step.program;
    ASSERT_NO_THROW(verify(program)) << to_string(program);
    DoubleBuffers want;
    std::vector<Size> elements;
    for (const Program::Buffer& buffer : program.buffers) {
      elements.push_back(buffer.elements);
      want.emplace_back(static_cast<std::size_t>(buffer.elements), 0.0);
      if (want.size() <= step.inputs.size()) want.back() = get_values(step.inputs[want.size() - 1]);
    }
    DoubleBuffers got = want;
    for (const LoopNest& nest : program.nests) execute(nest, want);
    for (const Program::Group& group : program.groups) {
      const Schedule schedule = choose(program, group, target);
      ASSERT_NO_THROW(verify(schedule, elements)) << to_string(schedule);
      ASSERT_NO_THROW(execute(schedule, got, seed)) << to_string(schedule);
      groups += group.count > 1;
    }
    several += attentions(program).size() > 2;
    for (const Program::Result& result : program.results) {
      const auto b = static_cast<std::size_t>(result.buffer);
      for (std::size_t i = 0; i < want[b].size(); ++i)
        ASSERT_NEAR(got[b][i], want[b][i], 1e-9 * std::max(1.0, std::abs(want[b][i])))
            << "b" << b << "[" << i << "]\n"
            << to_string(program);
    }
  });
  std::cout << several << " of several attentions, " << groups << " groups\n";
  if (std::getenv("EIN_SEEDS")) return;
  EXPECT_GT(several, 20u);
  EXPECT_GT(groups, 300u);
}

TEST(Decoders, AttentionOfOtherNestsIsFound) {
  Program program =
      grouped({.layers = 2, .heads = 2, .key_heads = 2}, target_with_tiles(4, 4)).program;
  ASSERT_NO_THROW(verify(program));
  std::vector<std::size_t> found;
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    if (program.groups[g].attention) found.push_back(g);
  }
  ASSERT_EQ(found.size(), 4u);  // of the second layer's gradients first
  for (const std::size_t first : {0, 2}) {
    Program other = program;
    std::swap(other.groups[found[first]].attention, other.groups[found[first + 1]].attention);
    EXPECT_THROW(verify(other), std::logic_error) << first;
  }
}

std::size_t bytes_of_input(const Decoder& d) {
  return static_cast<std::size_t>(d.batch * d.positions * d.width()) * size_of(d.dtype);
}

/// What the values in between take beside the inputs of so many checkpoints.
std::size_t beside_checkpoints(Decoder decoder, std::int64_t layers) {
  decoder.layers = layers;
  const DecoderModel model(decoder, decoder.dtype);
  auto step = compile([&](const Tensor& x, const Tensor& memory, const Tensor& targets) {
    return model.step(x, memory, targets);
  });
  const std::vector<Tensor> x = model.arguments(0);
  step.prepare(x[0], x[1], x[2]);
  const std::size_t inputs = static_cast<std::size_t>(layers) * bytes_of_input(decoder);
  return std::max(step.memory().arena, inputs) - inputs;
}

TEST(Decoders, CheckpointsHoldTheirInputsAndOneLayer) {
  for_seeds(40, [&](unsigned seed) {
    Decoder decoder = make_decoder(seed);
    decoder.checkpoint = Checkpoint::layers;
    decoder.residual = true;
    decoder.updates = false;
    decoder.of_input = true;  // else the first layer has less to do
    SCOPED_TRACE(to_string(decoder));
    const std::size_t one = beside_checkpoints(decoder, 1);
    for (const int layers : {2, 3, 4, 6}) {
      // Values may fit each other's places in another way.
      EXPECT_LE(beside_checkpoints(decoder, layers), one + one / 50 + 1024) << layers;
    }
  });
}

}  // namespace
}  // namespace ein::test
