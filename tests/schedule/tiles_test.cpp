// Reductions of pairs in tiles: their schedules are verified and executed in double precision, and
// their code is run, beside the nest in plain loops.
#include "schedule/cpu_choose_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <vector>

#include "cpu/kernel.hpp"
#include "oracle/execute.hpp"
#include "schedule/cpu_choose.hpp"
#include "support/random_nests.hpp"
#include "support/row_code.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

using test::NestMemory;

/// out[n, i, j] = combine over k of a function of a[n, i, k], b[k, j], and maybe of g[i, j], with
/// operands laid in any order, and maybe an epilogue.
struct RandomPairs {
  LoopNest nest;
  NestMemory memory;

  RandomPairs(std::mt19937& random, std::int64_t longest, DType dtype) {
    const auto pick = [&](std::int64_t low, std::int64_t high) {
      return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    const std::int64_t sizes[] = {pick(1, 3), pick(1, longest), pick(1, longest), pick(1, longest)};
    const char* names[] = {"n", "i", "j", "k"};
    for (std::size_t a = 0; a < 4; ++a) nest.axes.push_back({names[a], sizes[a], a == 3});
    nest.compute = dtype == DType::f64 ? DType::f64 : DType::f32;
    const auto operand = [&](std::vector<std::size_t> axes, DType of) {
      LoopNest::Operand operand{.dtype = of, .strides = std::vector<Size>(4, 0)};
      std::int64_t stride = 1;
      for (const std::size_t a : axes) {
        operand.strides[a] = stride;
        stride *= sizes[a];
      }
      operand.buffer = memory.add(random, of, stride);
      return operand;
    };
    const auto shuffled = [&](std::vector<std::size_t> axes) {
      std::shuffle(axes.begin(), axes.end(), random);
      return axes;
    };
    nest.inputs = {
        operand(pick(0, 2) > 0 ? std::vector<std::size_t>{3, 1, 0} : shuffled({0, 1, 3}), dtype),
        operand(shuffled(pick(0, 3) == 0 ? std::vector<std::size_t>{0, 2, 3}
                                         : std::vector<std::size_t>{2, 3}),
                dtype)};
    const bool has_third = pick(0, 2) == 0;
    if (has_third) nest.inputs.push_back(operand({2, 1}, dtype));
    nest.output = operand({2, 1, 0}, dtype);
    const Ex a = Ex::input(0), b = Ex::input(1);
    const Ex bodies[] = {a + b, (a - b) * (a - b), Ex::apply(ScalarOp::exp, a) * b,
                         Ex::apply(ScalarOp::max, a, b) - b};
    Ex body = bodies[pick(0, 3)];
    if (has_third) body = body * Ex::input(2);
    nest.body = body;
    const Combine combines[] = {Combine::sum, Combine::max, Combine::min};
    nest.combine = combines[pick(0, 2)];
    if (pick(0, 2) == 0)
      nest.epilogue = has_third ? Ex::input(0) * Ex(0.5) - Ex::input(2) : Ex::input(0) * Ex(0.5);
  }
};

std::size_t tiles_of(const Schedule& schedule) {
  std::size_t tiles = 0;
  for (const Schedule::Step& step : schedule.steps) {
    const Schedule::Part& part = step.parts[0];
    tiles += !part.whole && !part.product && part.rows.nests.size() > 1;
  }
  return tiles;
}

TEST(Tiles, AreTheNestInDoublePrecision) {
  Target target = test::small_target();
  target.folded_registers = 4, target.tile_registers = 2;
  target.least_tile_uses = 3, target.least_tile_depth = 2, target.most_tile_depth = 30;
  std::size_t tiles = 0;
  test::for_seeds(600, [&](unsigned seed) {
    std::mt19937 random(seed);
    RandomPairs pairs(random, 26, seed % 3 == 0 ? DType::f64 : DType::f32);
    const Schedule schedule = choose(pairs.nest, target);
    const std::string text = to_string(pairs.nest) + to_string(schedule);
    ASSERT_NO_THROW(verify(schedule, pairs.memory.elements())) << text;
    DoubleBuffers want = pairs.memory.values, got = want;
    execute(pairs.nest, want);
    ASSERT_NO_THROW(execute(schedule, got, seed)) << text;
    for (std::size_t b = 0; b < want.size(); ++b) {
      for (std::size_t i = 0; i < want[b].size(); ++i)
        ASSERT_NEAR(got[b][i], want[b][i], 1e-9) << "b" << b << "[" << i << "]\n" << text;
    }
    tiles += tiles_of(schedule) > 0;
  });
  std::cout << tiles << " in tiles\n";
  EXPECT_GE(tiles, test::at_least(300));
}

TEST(Tiles, RunAsCode) {
  SKIP_WITHOUT_ROW_CODE;
  std::size_t tiles = 0;
  test::for_seeds(120, [&](unsigned seed) {
    std::mt19937 random(seed);
    const DType dtype = seed % 4 == 0 ? DType::f64 : seed % 4 == 1 ? DType::bf16 : DType::f32;
    RandomPairs pairs(random, 70, dtype);
    const Schedule schedule = choose(pairs.nest, host::RowCode::target());
    tiles += tiles_of(schedule) > 0;
    DoubleBuffers want = pairs.memory.values;
    execute(pairs.nest, want);
    const auto kernel = host::make_kernel(pairs.nest);
    std::vector<std::byte*> buffers;
    for (auto& bytes : pairs.memory.bytes) buffers.push_back(bytes.data());
    std::vector<std::byte> workspace(kernel->workspace_bytes(2) + 64);
    auto* const aligned = reinterpret_cast<std::byte*>(
        (reinterpret_cast<std::uintptr_t>(workspace.data()) + 63) / 64 * 64);
    kernel->run({buffers, aligned, {}, 2});
    const auto out = static_cast<std::size_t>(pairs.nest.output.buffer);
    const double tolerance = dtype == DType::f64 ? 1e-12 : dtype == DType::bf16 ? 0.02 : 2e-5;
    for (std::size_t i = 0; i < want[out].size(); ++i)
      ASSERT_NEAR(pairs.memory.value(pairs.nest.output.buffer, i), want[out][i],
                  tolerance * std::max(1.0, std::abs(want[out][i])))
          << i << "\n"
          << to_string(pairs.nest) << to_string(schedule);
  });
  std::cout << tiles << " in tiles\n";
  EXPECT_GE(tiles, test::at_least(40));
}

}  // namespace
}  // namespace ein
