// The bytes that a program's groups move, against a count of elements block by block.
#include "cost/traffic.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/optim.hpp>
#include "cost/scope.hpp"
#include "schedule/cpu_group_nests.hpp"
#include "schedule/gpu_group_rows.hpp"
#include "support/random_nests.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

using Element = std::pair<int, std::int64_t>;  // of a buffer

/// Calls f(point, block) for each point of nest i of a group.
template <class F>
void for_each_point(const Program& program, const Program::Group& group, std::size_t i,
                    const F& f) {
  const LoopNest& nest = program.nests[group.first + i];
  std::vector<std::int64_t> point(nest.axes.size(), 0);
  for (;;) {
    std::int64_t block = 0;
    if (const auto* blocks = group.blocks(); blocks && !blocks->axes.empty())
      block = point[blocks->axes[i]] / (nest.axes[blocks->axes[i]].size / blocks->count);
    for (std::size_t a = 0; a < (group.rows() ? group.rows()->axes : 0); ++a)
      block = block * nest.axes[a].size + point[a];
    f(point, block);
    std::size_t a = point.size();
    while (a > 0 && ++point[a - 1] == nest.axes[a - 1].size) point[--a] = 0;
    if (a == 0) return;
  }
}

Element element(const LoopNest::Operand& operand, const std::vector<std::int64_t>& point) {
  std::int64_t place = operand.offset;
  for (std::size_t a = 0; a < point.size(); ++a) place += operand.strides[a] * point[a];
  return {operand.buffer, place};
}

/// What the nests of a group use, element by element.
class Counter {
 public:
  Counter(const Program& program, const Program::Group& group) : program_(program), group_(group) {}

  Cost of_nest(std::size_t i) {
    const LoopNest& nest = program_.nests[group_.first + i];
    std::map<Element, std::set<std::int64_t>> blocks;  // that use it
    std::set<Element> written;
    for_each_point(program_, group_, i, [&](const auto& point, std::int64_t block) {
      for (const LoopNest::Operand& input : nest.inputs)
        blocks[element(input, point)].insert(block);
      written.insert(element(nest.output, point));
    });
    Cost cost;
    for (const auto& [e, of] : blocks) {
      if (!is_local(e) && !written_.contains(e) && !at_hand_.contains({e, *of.begin()}))
        cost.bytes_read += bytes(e);
    }
    for (const Element& e : written) {
      if (!is_local(e)) cost.bytes_written += bytes(e);
    }
    // What all blocks use, each of them reads again.
    for (const auto& [e, of] : blocks) {
      if (of.size() == 1 && group_.count > 1) at_hand_.insert({e, *of.begin()});
    }
    written_.insert(written.begin(), written.end());
    return cost;
  }

 private:
  const Program::Buffer& buffer(const Element& e) const {
    return program_.buffers[static_cast<std::size_t>(e.first)];
  }
  bool is_local(const Element& e) const { return buffer(e).is_local; }
  Count bytes(const Element& e) const { return Count(std::uint64_t{size_of(buffer(e).dtype)}); }

  const Program& program_;
  const Program::Group& group_;
  std::set<std::pair<Element, std::int64_t>> at_hand_;
  std::set<Element> written_;
};

struct Checked {
  bool is_exact, shares;  // whether some nest finds what it reads at hand
};
Checked check(const Program& program) {
  Cost expected, alone;
  for (const Program::Group& group : program.groups) {
    Counter counter(program, group);
    for (std::size_t i = 0; i < group.count; ++i) {
      expected += counter.of_nest(i);
      alone += Counter(program, group).of_nest(i);
    }
  }
  const Cost counted = cost(program);
  // Blocks of which a part alone is at hand are counted as read.
  EXPECT_GE(counted.bytes_read, expected.bytes_read) << to_string(program);
  EXPECT_LE(counted.bytes_read, alone.bytes_read) << to_string(program);
  EXPECT_EQ(counted.bytes_written, expected.bytes_written) << to_string(program);
  return {counted.bytes_read == expected.bytes_read, expected.bytes_read != alone.bytes_read};
}

TEST(Traffic, OfRandomGroups) {
  int shared = 0, exact = 0, programs = 0;
  const auto count = [&](const Program& program) {
    const Checked checked = check(program);
    ++programs, shared += checked.shares, exact += checked.is_exact;
  };
  test::for_seeds(400, [&](unsigned seed) {
    std::mt19937 random(seed);
    const auto size = [&] { return std::uniform_int_distribution<int>(2, 40)(random); };
    const int rows = size(), columns = size();
    test::RandomChain chain(random, rows, columns);
    const int last = static_cast<int>(chain.program.buffers.size()) - 1;
    Program on_cpu = chain.program, on_gpu = chain.program;
    group_nests(on_cpu, test::small_target(), std::vector{last});
    count(on_cpu);
    group_rows(on_gpu, test::small_gpu(), std::vector{last});
    count(on_gpu);
  });
  EXPECT_GE(shared, static_cast<int>(test::at_least(100)));
  EXPECT_GE(exact, programs * 9 / 10);
}

/// Bytes and FLOPs of a compiled step for each of a million parameters.
std::pair<double, double> of_step(DType dtype, bool clips) {
  const Tensor p = randn({1000, 1000}).to(dtype).requires_grad(true);
  optim::AdamW optimizer({p}, {.weight_decay = 0.1});
  auto step = compile([&](const Tensor& gradient) {
    p.set_grad(gradient);
    if (clips) clip_grad_norm(std::vector<Tensor>{p}, 1.0);
    optimizer.step();
    p.zero_grad();
  });
  step.prepare(ones({1000, 1000}, dtype));
  EXPECT_EQ(step.cost(), step.bill().total());
  return {step.cost().bytes().approximate() / 1e6, step.cost().model.approximate() / 1e6};
}

TEST(Traffic, OfAnAdamWStep) {
  // Gradient, parameter and two moments are read, the last three written; clipping reads the
  // gradient before.
  EXPECT_NEAR(of_step(DType::f32, false).first, 7 * 4, 0.01);
  EXPECT_NEAR(of_step(DType::f32, true).first, 8 * 4, 0.01);
  // With a master copy: gradient and parameter in bf16, three in f32; the parameter is read, as it
  // may have been written to.
  EXPECT_NEAR(of_step(DType::bf16, false).first, 3 * 2 + 6 * 4, 0.01);
}

TEST(Traffic, AnInputThatIsGivenTwiceIsReadOnce) {
  const Tensor x = ones({1000});
  auto squares = compile([](const Tensor& a) { return einsum(a, a, "i, i ->"); });
  squares.prepare(x);
  EXPECT_EQ(squares.cost().bytes_read, Count(4 * 1000));
  auto product = compile([](const Tensor& a) { return a.at({slice(0, 999)}) * a.at({slice(1)}); });
  product.prepare(x);
  EXPECT_EQ(product.cost().bytes_read, Count(2 * 4 * 999));
}

}  // namespace
}  // namespace ein
