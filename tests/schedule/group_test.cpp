#include "schedule/cpu_group_nests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/named.hpp>
#include "cpu/kernel.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::get_values;

/// for i in rows, j in columns: out[i, j] = expr of operands that lie as given.
LoopNest map_nest(std::int64_t rows, std::int64_t columns, std::vector<LoopNest::Operand> inputs,
                  LoopNest::Operand output, const ScalarExpr& body) {
  LoopNest nest;
  nest.axes = {{"i", rows, false, false}, {"j", columns, false, false}};
  nest.inputs = std::move(inputs);
  nest.output = std::move(output);
  nest.body = body;
  return nest;
}
LoopNest::Operand at(int buffer, std::vector<Size> strides, std::int64_t offset = 0) {
  return {.buffer = buffer, .dtype = DType::f32, .offset = offset, .strides = std::move(strides)};
}

/// x -> x + 1 -> sum of rows -> x · sum: a buffer of the input, two of intermediate values, one of
/// the result.
Program chain(std::int64_t rows, std::int64_t columns) {
  Program p;
  p.input_count = 1;
  p.buffers = {{rows * columns, DType::f32},
               {rows * columns, DType::f32},
               {rows, DType::f32},
               {rows * columns, DType::f32}};
  p.nests.push_back(
      map_nest(rows, columns, {at(0, {columns, 1})}, at(1, {columns, 1}), Ex::input(0) + 1.0));
  LoopNest sum = map_nest(rows, columns, {at(1, {columns, 1})}, at(2, {1, 0}), Ex::input(0));
  sum.axes[1].reduced = true;
  sum.combine = Combine::sum;
  p.nests.push_back(sum);
  p.nests.push_back(map_nest(rows, columns, {at(1, {columns, 1}), at(2, {1, 0})},
                             at(3, {columns, 1}), Ex::input(0) * Ex::input(1)));
  return p;
}

TEST(Group, ChainsOverTheSameRowsRunTogether) {
  Program p = chain(512, 128);
  group_nests(p, Target{}, std::vector{3});
  ASSERT_EQ(p.groups.size(), 1u);
  EXPECT_EQ(p.groups[0].count, 3u);
  EXPECT_EQ(p.groups[0].blocks()->count, 8);  // 512 · 128 / 8192
  EXPECT_TRUE(p.buffers[1].is_local);
  EXPECT_TRUE(p.buffers[2].is_local);
  EXPECT_FALSE(p.buffers[0].is_local);
  EXPECT_FALSE(p.buffers[3].is_local);
  EXPECT_NE(to_string(p).find("the next 3 together, in 8 blocks:"), std::string::npos)
      << to_string(p);
}

TEST(Group, WhatIsKeptIsNotLocal) {
  Program p = chain(512, 128);
  group_nests(p, Target{}, std::vector{1, 3});
  EXPECT_FALSE(p.buffers[1].is_local);
  EXPECT_TRUE(p.buffers[2].is_local);
}

// What comes between and needs nothing of the others, or the others nothing of it, makes room.
TEST(Group, OthersBetweenArePassedOver) {
  Program p = chain(512, 128);
  LoopNest total = map_nest(512, 128, {at(0, {128, 1})}, at(4, {0, 0}), Ex::input(0));
  total.axes[0].reduced = total.axes[1].reduced = true;
  total.combine = Combine::sum;
  p.buffers.push_back({1, DType::f32});
  p.nests.insert(p.nests.begin() + 1, total);
  Program other = p;
  group_nests(p, Target{}, std::vector{3, 4});
  ASSERT_EQ(p.groups.size(), 2u);
  EXPECT_EQ(p.groups[0].count, 3u);
  EXPECT_EQ(p.nests[3].output.buffer, 4);
  EXPECT_TRUE(p.buffers[1].is_local);

  // Not so where a later nest reads what it writes, or writes what it reads.
  other.nests[3].inputs.push_back(at(4, {0, 0}));
  Program writes = other;
  group_nests(other, Target{}, std::vector{3, 4});
  EXPECT_EQ(other.nests[2].output.buffer, 4);
  EXPECT_EQ(other.nests[3].output.buffer, 3);
  writes.nests[3].inputs.pop_back();
  group_nests(writes, Target{}, std::vector{3, 4}, std::vector{3});
  EXPECT_EQ(writes.nests.back().output.buffer, 3);

  // Nor in another phase.
  Program phases = chain(512, 128);
  phases.buffers.push_back({1, DType::f32});
  phases.nests.insert(phases.nests.begin() + 1, total);
  phases.nests[3].phase = Phase::backward;
  group_nests(phases, Target{}, std::vector{3, 4});
  EXPECT_EQ(phases.nests.back().output.buffer, 3);
}

TEST(Group, SmallNestsStayAlone) {
  Program p = chain(16, 16);
  group_nests(p, Target{}, std::vector{3});
  EXPECT_EQ(p.groups.size(), 3u);
}

TEST(Group, NestsWithNothingInCommonStayApart) {
  Program p = chain(512, 128);
  p.nests.erase(p.nests.begin() + 1, p.nests.end());
  p.buffers = {{65536, DType::f32}, {65536, DType::f32}, {65536, DType::f32}, {65536, DType::f32}};
  p.input_count = 2;
  p.nests[0].output.buffer = 2;
  p.nests.push_back(p.nests[0]);
  p.nests[1].inputs[0].buffer = 1;
  p.nests[1].output.buffer = 3;
  group_nests(p, Target{}, std::vector{2, 3});
  EXPECT_EQ(p.groups.size(), 2u);
}

// A few columns of each of many rows come slowly from memory: neither is a sum of columns cut into
// such pieces, nor a map before it for its sake.
TEST(Group, ColumnsAreNotCutIntoShortPieces) {
  Program p = chain(4096, 768);
  p.nests.pop_back();
  p.buffers[2].elements = 768;
  p.nests[1].axes[0].reduced = true;
  p.nests[1].axes[1].reduced = false;
  p.nests[1].output.strides = {0, 1};
  group_nests(p, Target{}, std::vector{1, 2});
  for (const Program::Group& group : p.groups) {
    for (std::size_t i = 0; i < group.blocks()->axes.size(); ++i)
      EXPECT_EQ(p.nests[group.first + i].axes[group.blocks()->axes[i]].name, "i") << to_string(p);
  }
}

/// x -> x + 1 -> sums down the columns -> x · sum.
Program chain_down(std::int64_t rows, std::int64_t columns) {
  Program p = chain(rows, columns);
  p.buffers[2].elements = columns;
  p.nests[1].axes[0].reduced = true;
  p.nests[1].axes[1].reduced = false;
  p.nests[1].output.strides = {0, 1};
  p.nests[2].inputs[1].strides = {0, 1};
  return p;
}

// Every block of rows gives a row of sums; their sum, and what needs it, comes after the group.
TEST(Group, ASumOverTheBlocksBecomesTwo) {
  Program p = chain_down(512, 128);
  p.nests[1].epilogue = Ex::input(0) * 0.5;
  group_nests(p, Target{}, std::vector{3});
  ASSERT_EQ(p.groups.size(), 3u) << to_string(p);
  EXPECT_EQ(p.groups[0].count, 2u);
  EXPECT_EQ(p.groups[0].blocks()->count, 8);
  ASSERT_EQ(p.buffers.size(), 5u);
  EXPECT_EQ(p.buffers[4].elements, 8 * 128);
  EXPECT_FALSE(p.buffers[4].is_local);
  EXPECT_FALSE(p.buffers[1].is_local);  // the last nest reads it
  EXPECT_TRUE(p.nests[1].epilogue.steps.empty());
  EXPECT_EQ(p.nests[1].output.buffer, 4);
  EXPECT_EQ(p.nests[2].inputs[0].buffer, 4);
  EXPECT_EQ(p.nests[2].output.buffer, 2);
  EXPECT_FALSE(p.nests[2].epilogue.steps.empty());
}

// Only what the blocks of the group are is at hand: here they are rows, and the sum wants blocks of
// columns of them.
TEST(Group, ASumAcrossTheBlocksStaysWhole) {
  Program p = chain(64, 1024);
  p.nests[1].axes[0].size = 1;
  p.nests[1].inputs[0] = at(0, {1024, 1});  // of the first row alone
  p.buffers[2].elements = 1;
  p.nests[2].inputs[1] = at(0, {1024, 1});
  group_nests(p, Target{}, std::vector{2, 3});
  EXPECT_EQ(p.buffers.size(), 4u) << to_string(p);
  EXPECT_EQ(p.groups[0].count, 2u) << to_string(p);
}

// The sum of a block is a plain one, and what blocks give should be much less than what they read.
TEST(Group, ASumOverBlocksOfManyOrFewRowsStaysWhole) {
  for (const auto& [rows, columns] : {std::pair{8192, 16}, {8, 65536}}) {
    Program p = chain_down(rows, columns);
    group_nests(p, Target{}, std::vector{3});
    EXPECT_EQ(p.buffers.size(), 4u) << to_string(p);
  }
}

TEST(Group, ATransposedReaderIsCutAlongTheOtherAxisOrNotAtAll) {
  Program p = chain(256, 256);
  // The last nest reads what the first wrote with rows and columns exchanged.
  p.nests[2] = map_nest(256, 256, {at(1, {1, 256}), at(2, {0, 1})}, at(3, {256, 1}),
                        Ex::input(0) * Ex::input(1));
  group_nests(p, Target{}, std::vector{3});
  for (const Program::Group& group : p.groups) {
    if (group.first + group.count != 3 || group.count < 2) continue;
    EXPECT_EQ(p.nests[2].axes[group.blocks()->axes.back()].name, "j");
  }
}

TEST(Group, InputsThatShareMemoryAreOne) {
  Program p;
  p.input_count = 3;
  p.buffers = {{65536, DType::f32}, {65536, DType::f32}, {65536, DType::f32}};
  // Writes buffer 0, then reads the first row of buffer 1 for each row, which would be harmless
  // were it not the same memory.
  p.nests.push_back(map_nest(256, 256, {at(2, {256, 1})}, at(0, {256, 1}), Ex::input(0) + 1.0));
  p.buffers.push_back({65536, DType::f32});
  p.nests.push_back(map_nest(256, 256, {at(1, {0, 1}), at(2, {256, 1})}, at(3, {256, 1}),
                             Ex::input(0) + Ex::input(1)));
  group_nests(p, Target{}, std::vector{3});
  EXPECT_EQ(p.groups.size(), 1u);
  group_nests(p, Target{}, std::vector{3}, std::vector{0, 0, 2});
  EXPECT_EQ(p.groups.size(), 2u);
}

/// The nest of two axes in plain loops: x/2 + y, or x - j where it has one operand; combined along
/// an axis.
void run_plainly(const LoopNest& nest, std::vector<std::vector<float>>& buffers) {
  const auto element = [&](const LoopNest::Operand& o, std::int64_t i, std::int64_t j) -> float& {
    return buffers[static_cast<std::size_t>(o.buffer)]
                  [static_cast<std::size_t>(o.offset + i * o.strides[0] + j * o.strides[1])];
  };
  for (std::int64_t i = 0; i < nest.axes[0].size; ++i) {
    for (std::int64_t j = 0; j < nest.axes[1].size; ++j) {
      const float x = element(nest.inputs[0], i, j);
      const float value = nest.inputs.size() == 2 ? x / 2 + element(nest.inputs[1], i, j)
                                                  : x - static_cast<float>(j);
      float& to = element(nest.output, i, j);
      const bool is_first = (nest.axes[0].reduced ? i : j) == 0;
      to = !nest.combine || is_first       ? value
           : *nest.combine == Combine::sum ? to + value
                                           : std::max(to, value);
    }
  }
}

/// Random chains of nests over one buffer each, run in groups and in plain loops.
TEST(Group, RandomProgramsGiveWhatPlainLoopsGive) {
  const unsigned seed = 20261121;
  std::mt19937 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto any = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int together = 0, in_two = 0;
  for (int round = 0; round < 120; ++round) {
    const std::int64_t rows = 32 << any(3), columns = 96 + 32 * any(6), size = rows * columns;
    Program p;
    p.input_count = 2;
    p.buffers.assign(2, {size, DType::f32});
    std::vector<std::vector<Size>> strides(2, {columns, 1});  // of each buffer
    const int count = 2 + any(6);
    for (int n = 0; n < count; ++n) {
      const int x = any(static_cast<int>(p.buffers.size())),
                y = any(static_cast<int>(p.buffers.size())),
                out = static_cast<int>(p.buffers.size());
      const auto read = [&](int b) {
        const auto& lies = strides[static_cast<std::size_t>(b)];
        return any(8) == 0 && rows == columns ? at(b, {lies[1], lies[0]}) : at(b, lies);
      };
      const bool sums = any(2) == 0, sums_down = sums && any(2) == 0;
      strides.push_back(sums_down ? std::vector<Size>{0, 1}
                        : sums    ? std::vector<Size>{1, 0}
                                  : std::vector<Size>{columns, 1});
      LoopNest nest = map_nest(rows, columns, {read(x), read(y)}, at(out, strides.back()),
                               Ex::input(0) * 0.5 + Ex::input(1));
      if (sums) {
        nest.axes[sums_down ? 0 : 1].reduced = true;
        nest.combine = any(2) ? Combine::sum : Combine::max;
      }
      if (!sums && any(6) == 0) {
        nest.body = Ex::input(0) - Ex::index(1);
        nest.inputs.pop_back();
      }
      p.buffers.push_back({sums_down ? columns : sums ? rows : size, DType::f32});
      p.nests.push_back(nest);
    }
    const std::vector<LoopNest> nests = p.nests;
    const std::size_t buffers = p.buffers.size();
    group_nests(p, Target{}, std::vector{static_cast<int>(buffers) - 1});
    in_two += p.nests.size() > nests.size();
    std::vector<std::vector<float>> got, want;
    for (const Program::Buffer& buffer : p.buffers) {
      got.emplace_back(static_cast<std::size_t>(buffer.elements));
      for (float& v : got.back()) v = static_cast<float>(any(2001) - 1000) / 1000;
    }
    want = got;
    std::vector<std::byte*> addresses;
    for (std::size_t b = 0; b < got.size(); ++b) {
      // Nobody may touch what a local buffer would have had.
      addresses.push_back(p.buffers[b].is_local ? nullptr
                                                : reinterpret_cast<std::byte*>(got[b].data()));
    }
    for (const Program::Group& group : p.groups) {
      together += group.count > 1;
      const auto kernel = host::make_kernel(p, group);
      const int threads = 1 + round % 3;
      std::vector<double> workspace(kernel->workspace_bytes(threads) / sizeof(double) + 16);
      auto* aligned = reinterpret_cast<std::byte*>(
          (reinterpret_cast<std::uintptr_t>(workspace.data()) + 63) / 64 * 64);
      kernel->run({addresses, aligned, {}, threads});
    }
    for (const LoopNest& nest : nests) run_plainly(nest, want);
    for (std::size_t b = 0; b < buffers; ++b) {
      if (p.buffers[b].is_local) continue;
      for (std::size_t i = 0; i < got[b].size(); ++i) {
        ASSERT_NEAR(got[b][i], want[b][i], 1e-3 * (1 + std::abs(want[b][i])))
            << "round " << round << " buffer " << b << "\n"
            << to_string(p);
      }
    }
  }
  EXPECT_GT(together, 25);
  EXPECT_GT(in_two, 10);
}

TEST(Group, ACompiledSoftmaxIsOneGroup) {
  auto f = compile([](const Tensor& x) { return softmax(x, "i [j]"); });
  const Tensor x = randn({512, 256});
  f(x);
  EXPECT_NE(f.text().find("the next 4 together"), std::string::npos) << f.text();
  EXPECT_LT(f.memory().arena, x.nbytes() / 8) << f.text();
  const auto want = get_values(softmax(x, "i [j]")), got = get_values(f(x));
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6);
}

// The product of complex numbers is a scan of pairs: rows of one kind behind those of another.
TEST(Group, AProductOfComplexNumbersBehindAMap) {
  for (const Shape& shape : {Shape{100, 4800}, Shape{50, 1, 4800}, Shape{100, 16, 300}}) {
    for (const DType dtype : {DType::c64, DType::c128}) {
      const Tensor x = complex(zeros(shape, real_dtype(dtype)), ones(shape, real_dtype(dtype)));
      const auto product = [](const Tensor& y) {
        return real(reduce(y * y, "a ... -> a", "prod"));
      };
      EXPECT_EQ(get_values(compile(product)(x)), get_values(product(x))) << shape.to_string();
    }
  }
}

}  // namespace
}  // namespace ein
