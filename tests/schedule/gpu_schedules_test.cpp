// Schedules for a GPU: those of random reductions and groups are verified and executed in double
// precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "oracle/execute.hpp"
#include "schedule/gpu_choose.hpp"
#include "schedule/gpu_group_rows.hpp"
#include "support/random_nests.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

void expect_same(const std::vector<double>& got, const std::vector<double>& want,
                 const std::string& text) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 1e-9 * std::max(1.0, std::abs(want[i]))) << i << "\n" << text;
}

TEST(GpuSchedules, OfRandomReductions) {
  constexpr DType floats[] = {DType::f32, DType::bf16, DType::f64};
  const GpuTarget target = test::small_gpu();
  std::size_t reductions = 0, of_pieces = 0, across = 0;
  test::for_seeds(4000, [&](unsigned seed) {
    std::mt19937 random(seed);
    const test::RandomNest random_nest(random, 300, 2500, seed % 2 == 0, floats);
    const LoopNest& nest = random_nest.nest;
    if (!nest.combine) return;
    const Schedule schedule = choose(nest, target);
    const std::string text = to_string(nest) + to_string(schedule);
    ASSERT_NO_THROW(verify(schedule, random_nest.memory.elements())) << text;
    DoubleBuffers want = random_nest.memory.values, got = want;
    execute(nest, want);
    ASSERT_NO_THROW(execute(schedule, got, seed)) << text;
    const auto out = static_cast<std::size_t>(nest.output.buffer);
    expect_same(got[out], want[out], text);
    ++reductions;
    of_pieces += schedule.steps.size() > 1;
    across += !schedule.steps[0].threads->by_rows;
  });
  std::cout << reductions << " reductions, " << of_pieces << " of pieces, " << across
            << " across rows\n";
  EXPECT_GE(reductions, test::at_least(2000));
  EXPECT_GE(of_pieces, test::at_least(300));
  EXPECT_GE(across, test::at_least(300));
}

TEST(GpuSchedules, OfRandomGroups) {
  const GpuTarget target = test::small_gpu();
  std::size_t groups = 0, nests = 0, local = 0;
  test::for_seeds(4000, [&](unsigned seed) {
    std::mt19937 random(seed);
    test::RandomChain chain(random, 4 << (seed % 3), 5 + static_cast<int>(seed % 29));
    DoubleBuffers want = chain.memory.values, got = want;
    for (const LoopNest& nest : chain.program.nests) execute(nest, want);
    Program& program = chain.program;
    const int last = static_cast<int>(program.buffers.size()) - 1;
    group_rows(program, target, std::vector{last});
    std::vector<Size> elements;
    for (const Program::Buffer& buffer : program.buffers) {
      elements.push_back(buffer.elements);
      local += buffer.is_local;
    }
    for (const Program::Group& group : program.groups) {
      if (!group.rows()) {
        for (std::size_t n = 0; n < group.count; ++n) execute(program.nests[group.first + n], got);
        continue;
      }
      const Schedule schedule = choose(program, group, target);
      const std::string text = to_string(program) + to_string(schedule);
      ASSERT_NO_THROW(verify(schedule, elements)) << text;
      ASSERT_NO_THROW(execute(schedule, got, seed)) << text;
      ++groups;
      nests += group.count;
    }
    const auto out = static_cast<std::size_t>(last);
    expect_same(got[out], want[out], to_string(program));
  });
  std::cout << groups << " groups of " << nests << " nests, " << local << " local buffers\n";
  EXPECT_GE(groups, test::at_least(1000));
  EXPECT_GE(nests, test::at_least(3000));
  EXPECT_GE(local, test::at_least(500));
}

/// A row's sum, and what is done with it at each of its elements.
Program two_nests() {
  Program program;
  program.input_count = 1;
  program.buffers = {{8 * 16, DType::f32}, {8, DType::f32}, {8 * 16, DType::f32}};
  LoopNest sum;
  sum.axes = {{"i", 8}, {"j", 16, true}};
  sum.inputs = {{.buffer = 0, .strides = {16, 1}}};
  sum.output = {.buffer = 1, .strides = {1, 0}};
  sum.body = Ex::input(0);
  sum.combine = Combine::sum;
  LoopNest map;
  map.axes = {{"i", 8}, {"j", 16}};
  map.inputs = {{.buffer = 0, .strides = {16, 1}}, {.buffer = 1, .strides = {1, 0}}};
  map.output = {.buffer = 2, .strides = {16, 1}};
  map.body = Ex::input(0) / Ex::input(1);
  program.nests = {sum, map};
  program.results = {{2, DType::f32, {8, 16}, {16, 1}}};
  return program;
}

TEST(GpuSchedules, MistakesAreFound) {
  Program program = two_nests();
  const std::vector<int> kept{1, 2};
  group_rows(program, test::small_gpu(), kept);
  ASSERT_EQ(program.groups.size(), 1u);
  const Schedule good = choose(program, program.groups[0], test::small_gpu());
  const std::vector<Size> elements{8 * 16, 8, 8 * 16};
  EXPECT_NO_THROW(verify(good, elements));
  const auto is_found = [&](const auto& change) {
    Schedule bad = good;
    change(bad.steps[0], bad.steps[0].parts[1]);
    EXPECT_THROW(verify(bad, elements), std::logic_error) << to_string(bad);
  };
  using Step = Schedule::Step;
  using Part = Schedule::Part;
  is_found([](Step& step, Part&) { step.threads->lanes = 3; });
  is_found([](Step& step, Part&) { step.threads->width = 0; });
  is_found([](Step& step, Part&) { step.threads->run = 0; });
  is_found([](Step&, Part& part) { part.loops.clear(); });
  is_found([](Step&, Part& part) { part.loops[0] = 4; });
  is_found([](Step&, Part& part) { part.whole->axes[0].size = 2; });   // not what a piece has
  is_found([](Step&, Part& part) { part.places[2].strides[0] = 0; });  // two units write the same
  is_found([](Step&, Part& part) { part.places[1].offset = 1; });      // what another row makes
  is_found([](Step&, Part& part) { part.whole->inputs[1].strides[1] = 1; });  // another lane
}

TEST(GpuSchedules, Print) {
  Program program = two_nests();
  group_rows(program, test::small_gpu(), std::vector{2});
  const std::string text = to_string(choose(program, program.groups.at(0), test::small_gpu()));
  EXPECT_NE(text.find("s0: 1 f32 of each thread"), std::string::npos) << text;
  EXPECT_NE(text.find("step, i in 0..8, each by 4 lanes, 4 elements at once"), std::string::npos)
      << text;
  EXPECT_NE(text.find("i is a piece of i"), std::string::npos) << text;
}

}  // namespace
}  // namespace ein
