// Schedules: those of random nests and groups are verified and executed in double precision, and so
// is the code made of them.
#include "schedule/cpu_choose.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>

#include <ein/parallel.hpp>
#include "cpu/kernel.hpp"
#include "cpu/scheduled.hpp"
#include "nest/attention.hpp"
#include "oracle/execute.hpp"
#include "schedule/cpu_group_nests.hpp"
#include "support/random_nests.hpp"
#include "support/row_code.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

using test::NestMemory;
using test::RandomChain;
using test::RandomNest;

constexpr DType floats[] = {DType::f32, DType::f32, DType::f32, DType::f32, DType::bf16};
constexpr DType many[] = {DType::f32, DType::f32, DType::f32, DType::bf16, DType::f64, DType::f16};

void expect_same(const DoubleBuffers& got, const DoubleBuffers& want, const std::string& text) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t b = 0; b < got.size(); ++b) {
    for (std::size_t i = 0; i < got[b].size(); ++i)
      ASSERT_NEAR(got[b][i], want[b][i], 1e-9 * std::max(1.0, std::abs(want[b][i])))
          << "b" << b << "[" << i << "]\n"
          << text;
  }
}

/// Whether code is made for some of a schedule's rows.
bool of_code(const Schedule& schedule) {
  return std::any_of(schedule.steps.begin(), schedule.steps.end(), [](const auto& step) {
    return std::any_of(step.parts.begin(), step.parts.end(), [](const Schedule::Part& part) {
      return !part.whole && !part.product && !part.rows.in_strips;
    });
  });
}

TEST(Schedules, OfRandomNests) {
  const Target target = test::small_target();
  std::size_t of_rows = 0, of_steps = 0, down = 0, folded = 0;
  test::for_seeds(18000, [&](unsigned seed) {
    std::mt19937 random(seed);
    RandomNest random_nest(random, 70, 1500, seed % 5 == 0, many);
    LoopNest& nest = random_nest.nest;
    if (seed % 3 == 0) nest.compute = DType::f64;
    const Schedule schedule = choose(nest, target);
    ASSERT_NO_THROW(verify(schedule, random_nest.memory.elements()))
        << to_string(nest) << to_string(schedule);
    DoubleBuffers want = random_nest.memory.values, got = want;
    execute(nest, want);
    ASSERT_NO_THROW(execute(schedule, got, seed)) << to_string(nest) << to_string(schedule);
    expect_same(got, want, to_string(nest) + to_string(schedule));
    of_rows += of_code(schedule);
    of_steps += schedule.steps.size() > 1;
    const auto is_in_strips = [&](std::size_t step) {
      return schedule.steps[step].parts[0].rows.in_strips;
    };
    folded += of_code(schedule) && is_in_strips(schedule.steps.size() - 1);
    for (const Schedule::Step& step : schedule.steps) {
      for (const Schedule::Part& part : step.parts)
        down += !part.whole && part.rows.nests[0].over == Schedule::Over::rows;
    }
  });
  std::cout << of_rows << " of rows, " << of_steps << " of several steps, " << down
            << " steps combine rows, " << folded << " fold them\n";
  EXPECT_GE(of_rows, test::at_least(1000));
  EXPECT_GE(of_steps, test::at_least(300));
  EXPECT_GE(down, test::at_least(300));
  EXPECT_GE(folded, test::at_least(20));
}

TEST(Schedules, OfRandomGroups) {
  const Target target = test::small_target();
  std::size_t groups = 0, together = 0;
  test::for_seeds(2000, [&](unsigned seed) {
    std::mt19937 random(seed);
    RandomChain chain(random, 4 << (seed % 3), 5 + static_cast<int>(seed % 29), seed % 2 == 0);
    DoubleBuffers want = chain.memory.values;
    for (const LoopNest& nest : chain.program.nests) execute(nest, want);
    Program& program = chain.program;
    const int last = static_cast<int>(program.buffers.size()) - 1;
    group_nests(program, target, std::vector{last});
    DoubleBuffers got = chain.memory.values;
    std::vector<Size> elements;
    for (const Program::Buffer& buffer : program.buffers) {
      elements.push_back(buffer.elements);
      got.resize(std::max(got.size(), elements.size()));
      got[elements.size() - 1].resize(static_cast<std::size_t>(buffer.elements));
    }
    for (const Program::Group& group : program.groups) {
      const Schedule schedule = choose(program, group, target);
      ASSERT_NO_THROW(verify(schedule, elements)) << to_string(program) << to_string(schedule);
      ASSERT_NO_THROW(execute(schedule, got, seed)) << to_string(program) << to_string(schedule);
      groups += group.count > 1;
      for (const Schedule::Part& part : schedule.steps[0].parts)
        together += part.rows.nests.size() > 1;
    }
    const auto b = static_cast<std::size_t>(last);
    expect_same({got[b]}, {want[b]}, to_string(program));
  });
  std::cout << groups << " groups, " << together << " parts of several nests\n";
  EXPECT_GE(groups, test::at_least(500));
  EXPECT_GE(together, test::at_least(300));
}

/// Runs kernels on one thread and on two, which must give the same bits, and compares buffer
/// `output`.
void expect_runs(const std::vector<std::unique_ptr<host::Kernel>>& kernels, NestMemory memory,
                 int output, const DoubleBuffers& want, double tolerance, const std::string& text) {
  auto& out = memory.bytes[static_cast<std::size_t>(output)];
  const NestMemory before = memory;
  std::vector<std::vector<std::byte>> results;
  const int usual = num_threads();
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    memory.bytes = before.bytes;
    std::vector<std::byte*> buffers;
    for (auto& bytes : memory.bytes) buffers.push_back(bytes.data());
    for (const auto& kernel : kernels) {
      std::vector<std::byte> workspace(kernel->workspace_bytes(threads) + 64);
      auto* const aligned = reinterpret_cast<std::byte*>(
          (reinterpret_cast<std::uintptr_t>(workspace.data()) + 63) / 64 * 64);
      kernel->run({buffers, aligned, {}, threads});
    }
    results.push_back(out);
  }
  set_num_threads(usual);
  ASSERT_EQ(results[0], results[1]) << "threads change the result of\n" << text;
  const std::vector<double>& values = want[static_cast<std::size_t>(output)];
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(memory.value(output, i), values[i], tolerance * std::max(1.0, std::abs(values[i])))
        << "[" << i << "]\n"
        << text;
}

/// How far from the exact result a nest's may be.
double tolerance_of(const LoopNest& nest) {
  double tolerance = nest.output.dtype == DType::bf16                                ? 0.01
                     : nest.output.dtype == DType::f16                               ? 0.001
                     : nest.output.dtype == DType::f64 && nest.compute == DType::f64 ? 1e-12
                                                                                     : 1e-5;
  if (nest.combine != Combine::sum) return tolerance;
  for (const auto& axis : nest.axes)
    tolerance *= axis.reduced ? 1 + 0.01 * static_cast<double>(axis.size) : 1;
  return tolerance;
}

TEST(Schedules, CodeOfRandomNests) {
  SKIP_WITHOUT_ROW_CODE;
  std::size_t of_rows = 0, of_wide_rows = 0;
  test::for_seeds(1000, [&](unsigned seed) {
    std::mt19937 random(seed);
    const bool is_long = seed % 20 == 0, is_wide = seed % 3 == 0;
    RandomNest random_nest(random, is_long ? 80000 : 600, 1 << 17, is_long,
                           is_wide ? std::span<const DType>(many) : floats);
    LoopNest& nest = random_nest.nest;
    if (is_wide) nest.compute = DType::f64;
    const Schedule schedule = choose(nest, host::RowCode::target());
    if (!of_code(schedule)) return;
    ++(is_wide ? of_wide_rows : of_rows);
    DoubleBuffers want = random_nest.memory.values;
    execute(nest, want);
    std::vector<std::unique_ptr<host::Kernel>> kernels;
    kernels.push_back(host::make_kernel(nest));
    expect_runs(kernels, random_nest.memory, nest.output.buffer, want, tolerance_of(nest),
                to_string(nest) + to_string(schedule));
  });
  std::cout << of_rows << " of rows in f32, " << of_wide_rows << " in f64\n";
  EXPECT_GT(of_rows, test::seeds_or(1000) / 15);
  EXPECT_GT(of_wide_rows, test::seeds_or(1000) / 30);
}

TEST(Schedules, StripsOfRandomNests) {
  std::size_t in_pieces = 0, down = 0;
  test::for_seeds(600, [&](unsigned seed) {
    std::mt19937 random(seed);
    const bool is_long = seed % 100 == 0;
    RandomNest random_nest(random, is_long ? 600000 : 2000, is_long ? 1 << 20 : 1 << 14, is_long,
                           many);
    LoopNest& nest = random_nest.nest;
    if (seed % 3 == 0) nest.compute = DType::f64;
    const Schedule schedule = choose_as_reduction(nest, Target());
    std::string text = to_string(nest) + to_string(schedule);
    ASSERT_NO_THROW(verify(schedule, random_nest.memory.elements())) << text;
    DoubleBuffers want = random_nest.memory.values, got = want;
    execute(nest, want);
    ASSERT_NO_THROW(execute(schedule, got, seed)) << text;
    expect_same(got, want, text);
    in_pieces += schedule.steps.size() > 1;
    for (const Schedule::Step& step : schedule.steps)
      down += step.parts[0].rows.nests[0].over == Schedule::Over::rows;
    std::vector<std::unique_ptr<host::Kernel>> kernels;
    kernels.push_back(host::make_kernel(schedule));
    expect_runs(kernels, random_nest.memory, nest.output.buffer, want, tolerance_of(nest), text);
  });
  EXPECT_GE(in_pieces, test::at_least(10));
  EXPECT_GE(down, test::at_least(100));
}

TEST(Schedules, CodeOfRandomGroups) {
  SKIP_WITHOUT_ROW_CODE;
  test::for_seeds(150, [&](unsigned seed) {
    std::mt19937 random(seed);
    const int rows = 128 << (seed % 2);
    RandomChain chain(random, rows, static_cast<int>(20000 / rows + seed % 37), seed % 3 == 0);
    DoubleBuffers want = chain.memory.values;
    for (const LoopNest& nest : chain.program.nests) execute(nest, want);
    Program& program = chain.program;
    const int last = static_cast<int>(program.buffers.size()) - 1;
    group_nests(program, host::RowCode::target(), std::vector{last});
    std::string text = to_string(program);
    std::vector<std::unique_ptr<host::Kernel>> kernels;
    for (const Program::Group& group : program.groups) {
      text += to_string(choose(program, group, host::RowCode::target()));
      kernels.push_back(host::make_kernel(program, group));
    }
    while (chain.memory.bytes.size() < program.buffers.size()) {
      const Program::Buffer& buffer = program.buffers[chain.memory.bytes.size()];
      chain.memory.add(random, buffer.dtype, buffer.elements);
    }
    // Numbers of bf16 have 8 bits, those of f32 24, of f64 53: what is left of a difference has the
    // errors of what it was made of.
    double largest = 1;
    bool has_halves = false, has_floats = false;
    for (std::size_t b = 0; b < chain.memory.values.size(); ++b) {
      has_halves |= chain.memory.dtypes[b] == DType::bf16;
      has_floats |= chain.memory.dtypes[b] == DType::f32;
      for (double value : b < want.size() ? want[b] : std::vector<double>())
        largest = std::max(largest, std::abs(value));
    }
    const double error = has_halves ? 0.02 : has_floats ? 1e-5 : 1e-13;
    expect_runs(kernels, chain.memory, last, want, error * largest, text);
  });
}

// What a schedule must not be: each of these is one change to a schedule that holds.
TEST(Schedules, MistakesAreFound) {
  LoopNest nest;
  nest.axes = {{"i", 8}, {"j", 16}};
  nest.inputs = {{.buffer = 0, .strides = {16, 1}}};
  nest.output = {.buffer = 1, .strides = {16, 1}};
  nest.body = Ex::input(0) * 2.0;
  const Target target = test::small_target();
  const Schedule good = choose(nest, target);
  const std::vector<Size> elements{128, 128};
  ASSERT_FALSE(good.steps[0].parts[0].whole);
  EXPECT_NO_THROW(verify(good, elements));
  const auto is_found = [&](const auto& change) {
    Schedule bad = good;
    change(bad, bad.steps[0].parts[0]);
    EXPECT_THROW(verify(bad, elements), std::logic_error) << to_string(bad);
  };
  using Part = Schedule::Part;
  is_found([](Schedule&, Part& part) { part.places[0].offset = 1; });
  is_found([](Schedule&, Part& part) { part.places[0].offset = -1; });
  is_found([](Schedule&, Part& part) { part.places[0].buffer = 2; });
  is_found([](Schedule&, Part& part) { part.places[1].strides.push_back(0); });
  is_found([](Schedule&, Part& part) { part.places[1].strides[0] = 0; });
  is_found([](Schedule&, Part& part) { part.rows.length.size = 17; });
  is_found([](Schedule&, Part& part) { part.rows.rows.loop = 5; });
  is_found([](Schedule&, Part& part) { part.rows.nests[0].output = 7; });
  is_found([](Schedule&, Part& part) { part.rows.nests[0].body = Ex::input(3); });
  is_found([](Schedule&, Part& part) { part.rows.nests[0].body = Ex::index(4); });
  is_found([](Schedule&, Part& part) { part.rows.nests.clear(); });
  is_found([](Schedule& schedule, Part& part) {
    schedule.scratch.push_back({128});
    part.places[0].buffer = 2;
  });
  is_found([](Schedule& schedule, Part&) { schedule.steps[0].loops[0].block = 0; });
}

/// Attention of 2 heads with 10 queries and keys.
Attention small_attention() {
  const auto operand = [](int buffer, std::size_t rows, std::size_t along) {
    LoopNest::Operand result{.buffer = buffer, .strides = std::vector<Size>(5, 0)};
    result.strides[0] = 160, result.strides[rows] = 16, result.strides[along] = 1;
    return result;
  };
  return {.axes = {{"batch", 2}, {"query", 10}, {"key", 10}, {"depth", 16}, {"width", 16}},
          .scale = 0.25,
          .reach = 0,
          .q = operand(0, 1, 3),
          .k = operand(1, 2, 3),
          .v = operand(2, 2, 4),
          .out = operand(3, 1, 4),
          .log_sums = {},
          .gradients = {}};
}

TEST(Schedules, MistakesInLoopsAndProductsAreFound) {
  Program program;
  program.buffers.resize(4);
  Target target = test::small_target();
  target.queries_in_tile = 4, target.keys_in_tile = 3;
  const Schedule good = choose(program, small_attention(), target);
  const std::vector<Size> elements(4, 320);
  EXPECT_NO_THROW(verify(good, elements));
  const auto is_product = [](const Schedule::Part& part) { return part.product.has_value(); };
  const auto is_found = [&](const auto& change) {
    Schedule bad = good;
    Schedule::Step& step = bad.steps[0];
    change(step, *std::find_if(step.parts.begin(), step.parts.end(), is_product));
    EXPECT_THROW(verify(bad, elements), std::logic_error) << to_string(bad);
  };
  using Step = Schedule::Step;
  using Part = Schedule::Part;
  is_found([](Step&, Part& part) { part.places[0].offset = 1; });
  is_found([](Step&, Part& part) { part.places[1].step = 17; });
  is_found([](Step&, Part& part) { part.places[2].row_step = 5; });
  is_found([](Step&, Part& part) { part.places.pop_back(); });
  is_found([](Step&, Part& part) { part.places[1].dtype = DType::bf16; });
  is_found([](Step&, Part& part) { part.product->depth.size = 17; });
  is_found([](Step&, Part& part) { part.product->rows.loop = 9; });
  is_found([](Step&, Part& part) { part.product->adds = true; });
  is_found([](Step&, Part& part) { part.inside = 2; });
  is_found([](Step& step, Part&) { step.mask.reset(); });
  is_found([](Step& step, Part&) { step.mask->key = 3; });
  is_found([](Step& step, Part&) { std::swap(step.loops[1], step.loops[2]); });
  is_found([](Step& step, Part&) { step.loops[1].is_serial = true; });
}

// Units that share what one of them writes are found by running them.
TEST(Schedules, UnitsThatShareAreFound) {
  LoopNest nest;
  nest.axes = {{"i", 8}, {"j", 16}};
  nest.inputs = {{.buffer = 0, .strides = {16, 1}}};
  nest.output = {.buffer = 1, .strides = {16, 1}};
  nest.body = Ex::input(0) * 2.0;
  Schedule schedule = choose(nest, test::small_target());
  schedule.steps[0].parts[0].places[1].row_step = 8;  // rows overlap
  schedule.steps[0].parts[0].places[1].strides[0] /= 2;
  DoubleBuffers buffers{std::vector<double>(128, 1.0), std::vector<double>(128, 0.0)};
  EXPECT_THROW(execute(schedule, buffers), std::logic_error);
  schedule = choose(nest, test::small_target());
  schedule.steps[0].parts[0].places[0] = schedule.steps[0].parts[0].places[1];
  schedule.steps[0].parts[0].places[0].offset = 3;  // the next rows' elements
  schedule.steps[0].parts[0].rows.rows = {1, schedule.steps[0].parts[0].rows.rows.loop};
  EXPECT_THROW(execute(schedule, buffers), std::logic_error);
}

TEST(Schedules, Print) {
  LoopNest nest;
  nest.axes = {{"i", 2}, {"j", 200000, true}};
  nest.inputs = {{.buffer = 0, .strides = {200000, 1}}};
  nest.output = {.buffer = 1, .strides = {1, 0}};
  nest.body = Ex::input(0);
  nest.combine = Combine::sum;
  Target target = test::small_target();
  target.longest_combined_row = 65536, target.elements_per_unit = 32768;
  EXPECT_EQ(to_string(choose(nest, target)),
            "s0: 26 f32\n"
            "step, i in 0..2, j in 0..200000 by 16384\n"
            "  rows 1 of the piece's j\n"
            "    s0[13·i + j] = sum along the row of x0; x0 = b0[200000·i + 16384·j + element]\n"
            "step\n"
            "  rows 2 of 13\n"
            "    b1[row] = sum along the row of x0; x0 = s0[13·row + element]\n");
}

TEST(Schedules, PrintOfAttention) {
  Program program;
  program.buffers.resize(4);
  Target target = test::small_target();
  target.queries_in_tile = 4, target.keys_in_tile = 3;
  const std::string text = to_string(choose(program, small_attention(), target));
  for (const char* part :
       {"s0: 12 f32 of each thread\n",
        "step, batch0 in 0..2, query in 0..10 by 4, where key <= query + 0\n",
        "  each key in 0..10 by 3\n"
        "    s0[4·row + element] = b1[160·batch0 + 48·key + 16·row + element] · "
        "b0[160·batch0 + 64·query + row + 16·element], "
        "the piece's key x 16 x the piece's query\n"
        "    where nothing is hidden\n"
        "    rows the piece's key of the piece's query\n"
        "      s5[element] = max of the rows of x0; x0 = s0[4·row + element]\n"
        "    where some is hidden\n",
        "    s1[16·row + element] += s0[row + 4·element] · "
        "b2[160·batch0 + 48·key + 16·row + element], the piece's query x the piece's key x 16\n"
        "  rows the piece's query of 16\n"
        "    b3[160·batch0 + 64·query + 16·row + element] = (x0 / x1)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
}

}  // namespace
}  // namespace ein
