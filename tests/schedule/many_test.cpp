// Updates of many tensors as one group, and as one kernel.
#include "schedule/gpu_group_many.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <ein/tensor.hpp>

#include "codegen/units.hpp"
#include "cuda/cubin.hpp"
#include "cuda/nvrtc.hpp"
#include "support/kernels_on_host.hpp"
#include "support/nvrtc.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

using Group = Program::Group;
using Memory = std::vector<std::vector<float>>;  // by buffer; those that share memory use the first

LoopNest::Operand at(int buffer, std::vector<Size> strides, std::int64_t offset = 0) {
  return {.buffer = buffer, .dtype = DType::f32, .offset = offset, .strides = std::move(strides)};
}

LoopNest flat(std::int64_t size, std::vector<LoopNest::Operand> inputs, LoopNest::Operand output,
              const ScalarExpr& body) {
  LoopNest nest;
  if (size > 0) nest.axes = {{"i", size, false, false}};
  nest.inputs = std::move(inputs);
  nest.output = std::move(output);
  nest.body = body;
  nest.phase = Phase::update;
  return nest;
}

void every_nest_alone(Program& program) {
  program.groups.clear();
  for (std::size_t n = 0; n < program.nests.size(); ++n) program.groups.push_back({.first = n});
}

// --- what nests mean, in plain loops over floats ---

class Meaning {
 public:
  Meaning(Memory memory, std::vector<int> shared)
      : memory_(std::move(memory)), shared_(std::move(shared)) {}

  void run(const LoopNest& nest) {
    const std::int64_t size = nest.axes.empty() ? Size(1) : nest.axes[0].size;
    if (nest.combine) *element(nest, nest.output, 0) = 0;
    for (std::int64_t i = 0; i < size; ++i) run(nest, i);
  }
  void run(const LoopNest& nest, std::int64_t i) {
    std::vector<float> values;
    for (const ScalarStep& step : nest.body.steps) {
      const auto arg = [&](int a) { return values[static_cast<std::size_t>(step.args[a])]; };
      switch (step.op) {
        case ScalarOp::input:
          values.push_back(*element(nest, nest.inputs[static_cast<std::size_t>(step.which)], i));
          break;
        case ScalarOp::constant:
          values.push_back(static_cast<float>(step.real));
          break;
        case ScalarOp::add:
          values.push_back(arg(0) + arg(1));
          break;
        case ScalarOp::mul:
          values.push_back(arg(0) * arg(1));
          break;
        default:
          ADD_FAILURE() << "an operation that the test does not know";
          return;
      }
    }
    float& to = *element(nest, nest.output, i);
    to = nest.combine ? to + values.back() : values.back();
  }
  /// Groups as they may be run: tensors in any order, elements in any order.
  void run(const Program& program, const Group& group, std::mt19937& random) {
    const Group::Repeated* const repeated = group.repeated();
    if (!repeated) {
      for (std::size_t n = 0; n < group.count; ++n) run(program.nests[group.first + n]);
      return;
    }
    std::vector<std::size_t> tensors;
    for (std::size_t n = 0; n < group.count; n += repeated->each)
      tensors.push_back(group.first + n);
    std::shuffle(tensors.begin(), tensors.end(), random);
    for (std::size_t first : tensors) {
      const LoopNest& nest = program.nests[first];
      for (std::int64_t i = nest.axes.empty() ? Size(1) : nest.axes[0].size; i-- > 0;) {
        for (std::size_t n = 0; n < repeated->each; ++n) run(program.nests[first + n], i);
      }
    }
  }
  const std::vector<float>& of(int buffer) const {
    const auto b = static_cast<std::size_t>(buffer);
    return memory_[static_cast<std::size_t>(b < shared_.size() ? shared_[b] : buffer)];
  }

 private:
  float* element(const LoopNest& nest, const LoopNest::Operand& operand, std::int64_t i) {
    const auto place = operand.offset + (nest.axes.empty() ? Size(0) : operand.strides[0] * i);
    return &const_cast<std::vector<float>&>(of(operand.buffer))[static_cast<std::size_t>(place)];
  }
  Memory memory_;
  std::vector<int> shared_;
};

// --- random programs ---

struct RandomProgram {
  Program program;
  std::vector<int> shared;  // memory of the inputs
  std::vector<int> kept;
  Memory memory;
};

constexpr std::int64_t sizes[] = {0, 3, 64, 300, 1025};  // 0: a single number

RandomProgram random_program(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  RandomProgram r;
  Program& p = r.program;
  p.input_count = 14;
  for (std::size_t b = 0; b < 26; ++b)
    p.buffers.push_back({std::max<std::int64_t>(1, sizes[b % 5]) + 8, DType::f32});
  for (int b = 0; b < 14; ++b)
    r.shared.push_back(b >= 5 && below(4) == 0 ? r.shared[static_cast<std::size_t>(b) - 5] : b);
  const auto buffer_of = [&](int kind) { return kind + 5 * below(kind == 0 ? 6 : 5); };
  for (int n = 0; n < 24; ++n) {
    const int kind = below(3) == 0 ? below(5) : 2 + below(2);
    const std::int64_t size = sizes[kind];
    const std::vector<Size> moving = size > 0 ? std::vector<Size>{1} : std::vector<Size>{},
                            still = size > 0 ? std::vector<Size>{0} : std::vector<Size>{};
    const auto offset = [&] { return std::int64_t{below(5) == 0 ? below(8) : 0}; };
    std::vector<LoopNest::Operand> inputs{at(buffer_of(kind), moving, offset()),
                                          at(buffer_of(0), still, below(2))};
    Ex body = below(2) ? Ex::input(0) * Ex::input(1) : Ex::input(0) + Ex(0.25) * Ex::input(1);
    if (below(2)) {
      inputs.push_back(at(buffer_of(kind), moving, offset()));
      body = body + Ex::input(2);
    }
    LoopNest nest = flat(size, inputs, at(buffer_of(kind), moving, offset()), body);
    if (size > 0 && below(6) == 0) {
      nest.axes[0].reduced = true;
      nest.combine = Combine::sum;
      nest.output = at(buffer_of(0), still, below(2));
    }
    if (below(8) == 0) nest.phase = Phase::backward;
    // A nest does not read other elements than those it writes of what it writes, nor sums up what
    // it reads.
    bool is_sound = true;
    const auto memory_of = [&](int b) {
      return static_cast<std::size_t>(b) < r.shared.size() ? r.shared[static_cast<std::size_t>(b)]
                                                           : b;
    };
    for (const LoopNest::Operand& input : nest.inputs)
      is_sound &= memory_of(input.buffer) != memory_of(nest.output.buffer) ||
                  (!nest.combine && input.offset == nest.output.offset &&
                   input.strides == nest.output.strides);
    if (is_sound) p.nests.push_back(std::move(nest));
  }
  for (int b = 20; b < 26; ++b) {
    if (below(2)) r.kept.push_back(b);
  }
  for (const Program::Buffer& buffer : p.buffers) {
    std::vector<float>& values = r.memory.emplace_back(static_cast<std::size_t>(buffer.elements));
    for (float& value : values) value = static_cast<float>(below(100)) / 64 - 0.75f;
  }
  every_nest_alone(p);
  return r;
}

/// The buffers that must be right in the end.
std::vector<int> lasting(const RandomProgram& r) {
  std::vector<int> buffers = r.kept;
  for (int b = 0; b < static_cast<int>(r.program.input_count); ++b) buffers.push_back(b);
  return buffers;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Many, RandomProgramsMeanTheSame) {
  const unsigned seed = 20261121 + test::first_seed();
  std::mt19937 random(seed);
  std::size_t groups = 0, chains = 0, tensors = 0, locals = 0;
  for (int run = 0; run < static_cast<int>(test::seeds_or(2000)); ++run) {
    const RandomProgram r = random_program(random);
    Program grouped = r.program;
    group_many(grouped, r.kept, r.shared);
    ASSERT_EQ(grouped.nests.size(), r.program.nests.size());
    Meaning want(r.memory, r.shared), got(r.memory, r.shared);
    for (const LoopNest& nest : r.program.nests) want.run(nest);
    std::size_t covered = 0;
    for (const Group& group : grouped.groups) {
      ASSERT_EQ(group.first, covered);
      covered += group.count;
      got.run(grouped, group, random);
      if (!group.repeated()) continue;
      const std::size_t each = group.repeated()->each;
      ASSERT_EQ(group.count % each, 0u);
      ++groups;
      chains += each > 1;
      tensors += group.count / each > 1;
    }
    ASSERT_EQ(covered, grouped.nests.size());
    for (const Program::Buffer& buffer : grouped.buffers) locals += buffer.is_local;
    for (int b : lasting(r))
      ASSERT_TRUE(same_bits(got.of(b), want.of(b)))
          << "seed " << seed << ", program " << run << ", buffer " << b << "\n"
          << to_string(r.program) << to_string(grouped);
  }
  // The test meets what it is for.
  EXPECT_GT(groups, test::at_least(1000));
  EXPECT_GT(chains, test::at_least(300));
  EXPECT_GT(tensors, test::at_least(300));
  EXPECT_GT(locals, test::at_least(50));
}

TEST(Many, RandomProgramsAsKernels) {
  constexpr unsigned seed = 7;
  std::mt19937 random(seed);
  std::vector<RandomProgram> programs;
  std::vector<std::vector<codegen::KernelSource>> kernels;
  test::KernelsOnHost on_host;
  for (int run = 0; run < 25; ++run) {
    RandomProgram& r = programs.emplace_back(random_program(random));
    Program grouped = r.program;
    group_many(grouped, r.kept, r.shared);
    auto& all = kernels.emplace_back();
    for (std::size_t g = 0; g < grouped.groups.size(); ++g) {
      const std::string suffix = std::to_string(100 * run + static_cast<int>(g));
      for (codegen::KernelSource& kernel : codegen::emit(grouped, grouped.groups[g], {}, suffix)) {
        on_host.add(kernel);
        all.push_back(std::move(kernel));
      }
    }
  }
  ASSERT_EQ(on_host.build(), "");
  for (std::size_t run = 0; run < programs.size(); ++run) {
    const RandomProgram& r = programs[run];
    Meaning want(r.memory, r.shared);
    for (const LoopNest& nest : r.program.nests) want.run(nest);
    std::vector<std::shared_ptr<Storage>> storages;
    std::vector<std::byte*> buffers;
    for (std::size_t b = 0; b < r.memory.size(); ++b) {
      const bool shares = b < r.shared.size() && r.shared[b] != static_cast<int>(b);
      storages.push_back(shares ? storages[static_cast<std::size_t>(r.shared[b])]
                                : Storage::allocate(r.memory[b].size() * sizeof(float)));
      if (!shares)
        std::memcpy(storages.back()->data(), r.memory[b].data(), storages.back()->bytes());
      buffers.push_back(storages.back()->data());
    }
    std::vector<std::byte> workspace(1 << 16);
    for (const codegen::KernelSource& kernel : kernels[run])
      ASSERT_EQ(on_host.run(kernel, buffers, workspace.data(), {}, nullptr), "")
          << kernel.text.substr(kernel.kernel_begin);
    for (int b : lasting(r)) {
      const std::vector<float>& values = want.of(b);
      const auto* const got = reinterpret_cast<const float*>(buffers[static_cast<std::size_t>(b)]);
      for (std::size_t i = 0; i < values.size(); ++i) {
        // Reductions add in another order.
        ASSERT_NEAR(got[i], values[i], 1e-3 * (1 + std::abs(values[i])))
            << "seed " << seed << ", program " << run << ", buffer " << b << ", element " << i;
      }
    }
  }
}

// --- the update of an optimizer ---

/// For each tensor p += s · (m = 0.9 m + g), by way of a buffer for m that nothing else reads.
Program update_of(std::int64_t tensors) {
  Program p;
  p.input_count = static_cast<std::size_t>(3 * tensors) + 1;
  const auto size = [](std::int64_t t) { return 5 + 37 * t; };
  for (std::int64_t t = 0; t < tensors; ++t) {
    for (int i = 0; i < 3; ++i) p.buffers.push_back({size(t), DType::f32});
  }
  const int scale = static_cast<int>(p.buffers.size());
  p.buffers.push_back({1, DType::f32});
  for (std::int64_t t = 0; t < tensors; ++t) {
    const int first = static_cast<int>(3 * t), moved = static_cast<int>(p.buffers.size());
    p.buffers.push_back({size(t), DType::f32});
    p.nests.push_back(flat(size(t), {at(first + 1, {1}), at(first + 2, {1})}, at(moved, {1}),
                           Ex(0.9) * Ex::input(0) + Ex::input(1)));
    p.nests.push_back(flat(size(t), {at(moved, {1})}, at(first + 1, {1}), Ex::input(0) + 0.0));
    p.nests.push_back(flat(size(t), {at(first, {1}), at(moved, {1}), at(scale, {0})},
                           at(first, {1}), Ex::input(0) + Ex::input(1) * Ex::input(2)));
  }
  every_nest_alone(p);
  group_many(p, {});
  return p;
}

TEST(Many, OneGroupOfAllTensors) {
  const Program p = update_of(20);
  ASSERT_EQ(p.groups.size(), 1u);
  EXPECT_EQ(p.groups[0].count, 60u);
  ASSERT_TRUE(p.groups[0].repeated());
  EXPECT_EQ(p.groups[0].repeated()->each, 3u);
  for (std::size_t b = 0; b < p.buffers.size(); ++b) EXPECT_EQ(p.buffers[b].is_local, b > 60) << b;
  EXPECT_EQ(codegen::emit(p, p.groups[0]).size(), 1u);
}

TEST(Many, TablesFitIntoAKernelsParameters) {
  const Program p = update_of(300);
  const codegen::Units units = codegen::emit_units(p);
  std::size_t blocks = 0, wanted = 0;
  for (const codegen::KernelSource& launch : units.launches) {
    EXPECT_LE(8 * (launch.buffers.size() + launch.table.numbers.size()), 4096u);
    EXPECT_EQ(launch.grid()[1] * launch.grid()[2], 1u);
    blocks += launch.grid()[0];
  }
  for (std::size_t t = 0; t < 300; ++t)
    wanted += (5 + 37 * t + 1023) / 1024;  // four elements a thread
  EXPECT_EQ(blocks, wanted);
  EXPECT_EQ(units.launches.size(), 3u);  // a tensor takes two pointers and two numbers
  // All but the last have one kernel.
  EXPECT_EQ(units.launches[0].name, "many_f32_0");
}

TEST(Many, KernelsOfEveryArchitecture) {
  SKIP_WITHOUT_NVRTC();
  const codegen::Units units = codegen::emit_units(update_of(60));
  ASSERT_EQ(units.texts.size(), 1u);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    for (const gpu::KernelResources& kernel :
         gpu::kernels_of(gpu::compile({"many.cu", units.texts[0], arch}))) {
      EXPECT_EQ(kernel.stack_bytes, 0) << kernel.name;
      EXPECT_EQ(kernel.sm, std::string(arch) == "sm_80" ? 80 : 90);
    }
  }
}

}  // namespace
}  // namespace ein
