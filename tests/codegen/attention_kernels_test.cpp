// Attention that is recognised among nests, and its kernels: the emitted text runs on the host,
// against the interpreter of the graph before any pass.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <numeric>
#include <random>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include "backend/backend.hpp"
#include "codegen/emit.hpp"
#include "codegen/vocabulary.hpp"
#include "cuda/cubin.hpp"
#include "cuda/nvrtc.hpp"
#include "oracle/interpret.hpp"
#include "passes/find_attention.hpp"
#include "passes/nest_order.hpp"
#include "support/attention_cases.hpp"
#include "support/attention_step.hpp"
#include "support/kernels_on_host.hpp"
#include "support/nvrtc.hpp"
#include "support/open_sizes.hpp"
#include "support/tensor_values.hpp"

namespace ein::test {
namespace {

using Values = std::vector<double>;
using codegen::KernelSource;

constexpr std::uint64_t suite_seed = 20260117;

// --- what becomes of it ---

CompiledProgram compiled(const std::vector<Tensor>& arguments, const Function& function) {
  return test::compiled(arguments, function, [](Program& program, std::span<const int>) {
    engine::backend_of(cuda).group(program);
  });
}

std::vector<KernelSource> kernels_of(const Program& program, const std::string& suffix,
                                     const GpuTarget& target = {}, bool is_open = false) {
  std::vector<KernelSource> kernels;
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    const auto emit = [&](const Program& of) {
      return codegen::emit(of, of.groups[g], target, suffix + "_" + std::to_string(g));
    };
    for (KernelSource& kernel : is_open ? test::emitted_open(program, emit) : emit(program))
      kernels.push_back(std::move(kernel));
  }
  return kernels;
}

/// Whether a run wants memory for a value of so many elements.
bool has_memory_for(const Program& program, std::int64_t elements) {
  for (std::size_t b = program.input_count; b < program.buffers.size(); ++b) {
    if (!program.buffers[b].is_local && program.buffers[b].elements == elements) return true;
  }
  return false;
}

/// Runs the kernels, whose sizes may be arguments, on the host and compares every result with the
/// interpreter's. Errors may be as large as `tolerance` times the largest element.
void expect_right(const CompiledProgram& c, double tolerance, bool is_open) {
  const std::vector<KernelSource> kernels = kernels_of(c.program, "", {}, is_open);
  KernelsOnHost host;
  std::size_t workspace_bytes = 16;
  for (const KernelSource& kernel : kernels) {
    host.add(kernel);
    workspace_bytes = std::max<std::size_t>(workspace_bytes, kernel.workspace_bytes);
  }
  ASSERT_EQ(host.build(), "");
  std::vector<std::shared_ptr<Storage>> storages;
  std::vector<std::byte*> buffers;
  for (std::size_t b = 0; b < c.program.buffers.size(); ++b) {
    const Program::Buffer& buffer = c.program.buffers[b];
    const bool is_input = b < c.inputs.size();
    // What is local has no memory: its use would be seen.
    storages.push_back(
        is_input ? c.inputs[b].storage()
        : buffer.is_local
            ? nullptr
            : Storage::allocate(static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype)));
    buffers.push_back(storages.back() ? storages.back()->data() : nullptr);
    if (!is_input && storages.back())
      std::fill_n(buffers.back(), storages.back()->bytes(), std::byte{0xFF});
  }
  const auto workspace = Storage::allocate(workspace_bytes);
  KernelSource::Fault fault;
  for (const KernelSource& kernel : kernels) {
    ASSERT_EQ(host.run(kernel, buffers, workspace->data(), {}, &fault), "")
        << kernel.text.substr(kernel.kernel_begin);
  }
  std::vector<Values> values;
  for (const Tensor& x : c.inputs) values.push_back(get_values(x));
  const std::vector<Values> want = Interpreter<>::run(c.graph, values);
  for (std::size_t r = 0; r < want.size(); ++r) {
    const Program::Result& result = c.program.results[r];
    const Tensor y(storages[static_cast<std::size_t>(result.buffer)], result.dtype, result.shape,
                   result.strides, result.offset);
    const Values got = get_values(y);
    double scale = 0, worst = 0;
    for (double x : want[r]) scale = std::max(scale, std::abs(x));
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double error = std::abs(got[i] - want[r][i]);
      worst = error <= worst ? worst : error;  // NaN too
    }
    EXPECT_LE(worst, tolerance * scale) << "result " << r << " of scale " << scale;
  }
}

void expect_right(const CompiledProgram& c, double tolerance) {
  for (const bool is_open : {false, true}) expect_right(c, tolerance, is_open);
}

double tolerance_of(DType dtype) {
  return dtype == DType::bf16 ? 0.02 : dtype == DType::f16 ? 0.003 : 1e-5;
}

class AttentionKernels : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionKernels, EqualTheInterpreter) {
  const AttentionCase& c = GetParam();
  std::cout << "seed " << suite_seed << "\n";
  const CompiledProgram step = compiled(tensors_of(c, suite_seed), step_of(c));
  const auto found = attentions(step.program);
  ASSERT_EQ(found.size(), c.backward ? 2u : 1u) << to_string(step.program);
  EXPECT_EQ(found[0]->reach, c.reach);
  EXPECT_EQ(found[0]->back, c.back);
  EXPECT_EQ(found[0]->has_function(), c.form != ScoreForm::plain);
  EXPECT_EQ(found.size(), step.program.groups.size()) << "nothing is left beside them";
  EXPECT_FALSE(has_memory_for(step.program, numel(shape_of(c.layout.scores, c.sizes))));
  expect_right(step, tolerance_of(c.dtype));
}

const AttentionCase cases[] = {
    {"Plain", heads_outside, {}, DType::f32},
    {"Causal", heads_outside, {}, DType::f32, 0},
    {"ForwardAlone", heads_outside, {.q = 70, .k = 70}, DType::f32, 0, false},
    {"HeadsInside", heads_inside, {.q = 20, .k = 20, .d = 24}, DType::f32, 0},
    {"Turned", turned, {.q = 19, .k = 33, .d = 40}, DType::f32},
    {"Grouped", grouped, {.b = 1, .q = 21, .k = 21}, DType::f32, 0},
    {"Reach", heads_outside, {.q = 10, .k = 80}, DType::f32, 70},
    {"KeysThatNoneSees", heads_outside, {.b = 1, .q = 10, .k = 150}, DType::f32, 3},
    {"bf16", heads_outside, {.q = 70, .k = 70, .d = 64}, DType::bf16},
    {"bf16Causal", heads_outside, {.q = 70, .k = 70, .d = 64}, DType::bf16, 0},
    {"bf16ForwardAlone", heads_outside, {.q = 130, .k = 130, .d = 32}, DType::bf16, 0, false},
    {"bf16HeadsInside", heads_inside, {.q = 37, .k = 37, .d = 24}, DType::bf16, 0},
    {"bf16Turned", turned, {.b = 1, .q = 40, .k = 24, .d = 48}, DType::bf16},
    {"bf16Grouped", grouped, {.b = 1, .h = 3, .q = 70, .k = 70}, DType::bf16, 0},
    {"bf16GroupedPlain", grouped, {.b = 1, .h = 3, .q = 21, .k = 90}, DType::bf16},
    {"bf16Reach", heads_outside, {.b = 1, .q = 40, .k = 140}, DType::bf16, 100},
    {"bf16KeysThatNoneSees", heads_outside, {.b = 1, .q = 10, .k = 150}, DType::bf16, 3},
    {"bf16ManyBlocks", heads_outside, {.b = 2, .h = 132, .q = 65, .k = 65}, DType::bf16, 0, false},
    {"bf16ManyBlocksBackward", heads_outside, {.b = 3, .h = 88, .q = 40, .k = 40}, DType::bf16, 0},
    {"f16", heads_outside, {.b = 1, .q = 100, .k = 100, .d = 64}, DType::f16, 0},
    {"f16LongRows", heads_outside, {.b = 1, .h = 1, .q = 40, .k = 70, .d = 128}, DType::f16},
    {"Window", heads_outside, {.q = 90, .k = 90}, DType::f32, 0, true, 20},
    {"WindowAlone", heads_outside, {.q = 90, .k = 90}, DType::f32, {}, true, 20},
    {"WindowGrouped", grouped, {.b = 1, .q = 150, .k = 150}, DType::f32, 0, true, 70},
    {"bf16Window", heads_outside, {.b = 1, .q = 200, .k = 200}, DType::bf16, 0, true, 40},
    {"bf16WindowForwardAlone",
     heads_inside,
     {.b = 1, .q = 200, .k = 200},
     DType::bf16,
     0,
     false,
     3},
    {"Capped", heads_outside, {.q = 40, .k = 70}, DType::f32, {}, true, {}, ScoreForm::capped},
    {"CappedWindow", grouped, {.q = 90, .k = 90}, DType::f32, 0, true, 30, ScoreForm::capped},
    {"bf16Capped",
     heads_outside,
     {.q = 70, .k = 70, .d = 64},
     DType::bf16,
     0,
     true,
     {},
     ScoreForm::capped},
    {"Linear", heads_outside, {.q = 70, .k = 70}, DType::f32, 0, true, {}, ScoreForm::linear},
    {"LinearTurned", turned, {.q = 33, .k = 70}, DType::f32, {}, true, {}, ScoreForm::linear},
    {"Padded", heads_outside, {.q = 33, .k = 90}, DType::f32, {}, true, {}, ScoreForm::padded},
    {"PaddedGrouped", grouped, {.q = 70, .k = 70}, DType::f32, 0, true, {}, ScoreForm::padded},
    {"Documents", heads_outside, {.q = 70, .k = 70}, DType::f32, 0, true, {}, ScoreForm::documents},
    {"DocumentsInWindow",
     heads_inside,
     {.q = 90, .k = 90},
     DType::f32,
     0,
     true,
     17,
     ScoreForm::documents},
    {"Sigmoid", heads_outside, {.q = 30, .k = 40}, DType::f32, {}, true, {}, ScoreForm::sigmoid},
    {"f16LongestRows", heads_outside, {.b = 1, .h = 1, .q = 40, .k = 50, .d = 256}, DType::f16, 10},
};
INSTANTIATE_TEST_SUITE_P(Cases, AttentionKernels, testing::ValuesIn(cases), name_of);

// --- models ---

Function training_step(const nn::Attention& layer, std::optional<DType> autocast) {
  return [&layer, autocast](std::span<const Tensor> x) {
    return attention_step(layer, x[0], x[1], autocast);
  };
}

std::vector<Tensor> batch(std::int64_t positions, std::int64_t dim) {
  std::mt19937_64 random(suite_seed);
  return {random_tensor({2, positions, dim}, DType::f32, random),
          random_tensor({2, positions, dim}, DType::f32, random)};
}

TEST(FindAttentionTest, TrainingSteps) {
  manual_seed(3);
  nn::Attention layer(48, 3);
  for (const std::optional<DType> autocast : {std::optional<DType>(), std::optional(DType::bf16)}) {
    const CompiledProgram step = compiled(batch(37, 48), training_step(layer, autocast));
    ASSERT_EQ(attentions(step.program).size(), 2u) << to_string(step.program);
    expect_right(step, autocast ? 0.02 : 1e-5);
  }
}

// Each block of a model, and again where a checkpoint computes its forward pass a second time.
TEST(FindAttentionTest, Models) {
  nn::Transformer model(
      {.vocab_size = 50, .block_size = 24, .n_layer = 3, .n_head = 2, .n_embd = 32});
  const std::vector<Tensor> tokens{zeros({2, 24}, DType::i64), zeros({2, 24}, DType::i64)};
  for (const std::optional<DType> autocast : {std::optional<DType>(), std::optional(DType::bf16)}) {
    const CompiledProgram step = compiled(tokens, [&](std::span<const Tensor> x) {
      std::optional<Autocast> scope;
      if (autocast) scope.emplace(*autocast);
      const Tensor loss = cross_entropy(model(x[0]), x[1], "b s [v], b s ->");
      model.zero_grad();
      loss.backward();
      std::vector<Tensor> results{loss};
      for (const Tensor& p : model.parameters()) results.push_back(p.grad());
      return results;
    });
    EXPECT_EQ(attentions(step.program).size(), 6u) << to_string(step.program);
  }
  nn::Block block(32, 2);
  for (const std::optional<DType> autocast : {std::optional<DType>(), std::optional(DType::bf16)}) {
    const CompiledProgram step = compiled(batch(20, 32), [&](std::span<const Tensor> x) {
      std::optional<Autocast> scope;
      if (autocast) scope.emplace(*autocast);
      block.zero_grad();
      const Tensor y = checkpoint([&](const Tensor& t) { return block(t); }, x[0]);
      einsum(y.to(DType::f32), x[1], "b s d, b s d ->").backward();
      std::vector<Tensor> results;
      for (const Tensor& p : block.parameters()) results.push_back(p.grad());
      results.push_back(y);
      return results;
    });
    const auto found = attentions(step.program);
    ASSERT_EQ(found.size(), 3u) << to_string(step.program);
    EXPECT_FALSE(found[0]->log_sums);
    EXPECT_TRUE(found[1]->log_sums);
    EXPECT_TRUE(found[2]->gradients);
    expect_right(step, autocast ? 0.05 : 1e-5);
  }
}

// What is done to operands before, and to results behind.
TEST(FindAttentionTest, BetweenOtherMaps) {
  const AttentionCase c{"", heads_outside, {}, DType::f32, 0};
  const CompiledProgram step = compiled(tensors_of(c, suite_seed), [&](std::span<const Tensor> x) {
    std::vector<Tensor> leaves;
    for (int i = 0; i < 3; ++i) {
      leaves.push_back(x[static_cast<std::size_t>(i)].detach());
      leaves.back().requires_grad(true);
    }
    const Tensor mixed =
        attend(heads_outside, 0, leaves[0] * 0.5, exp(leaves[1]), leaves[2] + x[3], 16);
    const Tensor out = mixed * x[3] + leaves[2];
    std::vector<Tensor> results = gradients(out, x[3], leaves);
    results.push_back(out);
    return results;
  });
  EXPECT_EQ(attentions(step.program).size(), 2u) << to_string(step.program);
  expect_right(step, 1e-5);
}

// A value that another nest, or the caller, wants to see has to be there.
TEST(FindAttentionTest, NotWhatOthersRead) {
  nn::Attention dropping(48, 3, true, 0.5);
  EXPECT_TRUE(attentions(compiled(batch(37, 48), training_step(dropping, {})).program).empty());
  const AttentionCase c{"", heads_outside, {}, DType::f32, 0, false};
  const auto scores_of = [](std::span<const Tensor> x) {
    return einsum(x[0], x[1], "b h q d, b h k d -> b h q k") * 0.25;
  };
  const auto found = [&](const Function& f) {
    return attentions(compiled(tensors_of(c, suite_seed), f).program).size();
  };
  EXPECT_EQ(
      found([&](std::span<const Tensor> x) -> std::vector<Tensor> {
        return {einsum(softmax(scores_of(x), "b h q [k]"), x[2], "b h q k, b h k d -> b h q d")};
      }),
      1u);
  EXPECT_EQ(found([&](std::span<const Tensor> x) -> std::vector<Tensor> {
              const Tensor weights = softmax(scores_of(x), "b h q [k]");
              return {einsum(weights, x[2], "b h q k, b h k d -> b h q d"), weights};
            }),
            0u);
  EXPECT_EQ(found([&](std::span<const Tensor> x) -> std::vector<Tensor> {
              const Tensor scores = scores_of(x);
              return {einsum(softmax(scores, "b h q [k]"), x[2], "b h q k, b h k d -> b h q d"),
                      reduce(scores, "b h q k -> b h", Reduction::mean)};
            }),
            0u);
  // Not a softmax.
  EXPECT_EQ(found([&](std::span<const Tensor> x) -> std::vector<Tensor> {
              return {einsum(exp(scores_of(x)), x[2], "b h q k, b h k d -> b h q d")};
            }),
            0u);
  // Along the other axis.
  EXPECT_EQ(
      found([&](std::span<const Tensor> x) -> std::vector<Tensor> {
        return {einsum(softmax(scores_of(x), "b h [q] k"), x[2], "b h q k, b h k d -> b h q d")};
      }),
      0u);
}

TEST(FindAttentionTest, NotOfOtherSizesOrTypes) {
  for (AttentionSizes sizes : {AttentionSizes{.d = 8}, {.d = 20}, {.d = 264}}) {
    const AttentionCase c{"", heads_outside, sizes, DType::f32, 0};
    EXPECT_TRUE(attentions(compiled(tensors_of(c, suite_seed), step_of(c)).program).empty())
        << sizes.d;
  }
  const AttentionCase c{"", heads_outside, {}, DType::f64, 0};
  EXPECT_TRUE(attentions(compiled(tensors_of(c, suite_seed), step_of(c)).program).empty());
}

// There, scores of a small head stay in the cache.
TEST(FindAttentionTest, NotOfFewScoresOnTheCpu) {
  const AttentionCase c{"", heads_outside, {}, DType::f32, 0};
  const CompiledProgram step =
      test::compiled(tensors_of(c, suite_seed), step_of(c),
                     [](Program& program, auto) { engine::backend_of(cpu).group(program); });
  EXPECT_TRUE(attentions(step.program).empty());
}

// --- the order of nests ---

/// A nest over one element each: inputs, then the output.
LoopNest nest_of(const std::vector<int>& inputs, int output) {
  LoopNest nest;
  for (int buffer : inputs) nest.inputs.push_back({.buffer = buffer});
  nest.output.buffer = output;
  return nest;
}

TEST(NestOrderTest, GathersWhatMayMeet) {
  Program program;
  program.input_count = 2;
  program.buffers.resize(10);
  // 0: a = x; 1: b = y; 2: c = a; 3: d = b; 4: e = c d; 5: x = y
  program.nests = {nest_of({0}, 2), nest_of({1}, 3),    nest_of({2}, 4),
                   nest_of({3}, 5), nest_of({4, 5}, 6), nest_of({1}, 0)};
  using Items = std::vector<NestOrder::Item>;
  NestOrder order(program, {});
  EXPECT_EQ(order.gather({0, 3}), 0u);
  EXPECT_EQ(order.items(), (Items{{1}, {0, 3}, {2}, {4}, {5}}));
  // 2 needs the group, and 4 needs 2.
  EXPECT_EQ(order.gather({1, 4}), std::nullopt);
  EXPECT_EQ(order.items(), (Items{{1}, {0, 3}, {2}, {4}, {5}}));
  EXPECT_EQ(order.gather({2, 5}), 2u);
  EXPECT_EQ(order.items(), (Items{{1}, {0, 3}, {2, 5}, {4}}));
  const LoopNest::Operand x{.buffer = 0}, y{.buffer = 1};
  EXPECT_FALSE(order.keeps(0, 4, {&x}));
  EXPECT_TRUE(order.keeps(0, 4, {&y}));
  // What is written may not pass what reads it, in whatever buffers of the same memory.
  NestOrder plain(program, {});
  EXPECT_EQ(plain.gather({1, 5}), 1u);
  EXPECT_EQ(plain.items(), (Items{{0}, {2}, {1, 5}, {3}, {4}}));
  const std::vector<int> memory{0, 0};
  NestOrder shared(program, memory);
  EXPECT_EQ(shared.gather({0, 5}), 0u);
  EXPECT_EQ(shared.items(), (Items{{1}, {3}, {0, 5}, {2}, {4}}));
}

// --- text ---

/// To be read by people: EIN_WRITE_GOLDEN=1 writes what the test expects.
TEST(AttentionGoldenTest, TextIsWhatItWas) {
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const AttentionCase c{
        "", heads_inside, {.b = 4, .h = 12, .q = 1000, .k = 1000, .d = 64}, dtype, 0};
    const std::vector<Tensor> tensors(4, zeros(shape_of(c.layout.q, c.sizes), dtype));
    const CompiledProgram step = compiled(tensors, step_of(c));
    std::string text;
    for (const Program::Group& group : step.program.groups) {
      for (const KernelSource& kernel : codegen::emit(step.program, group))
        text += kernel.text.substr(kernel.kernel_begin) + "\n";
    }
    const std::string path =
        EIN_TEST_DATA "/../golden/attention_" + std::string(name(dtype)) + ".cu";
    if (std::getenv("EIN_WRITE_GOLDEN")) write_bytes(path, text);
    EXPECT_EQ(read_bytes(path), text) << path;
  }
}

// --- by NVRTC ---

class AttentionNvrtcTest : public testing::TestWithParam<std::string> {};

TEST_P(AttentionNvrtcTest, CompilesWithoutSpills) {
  SKIP_WITHOUT_NVRTC_FOR(GetParam());
  const int sm = std::stoi(GetParam().substr(3));
  std::string text = codegen::vocabulary();
  std::size_t count = 0;
  const auto add = [&](DType dtype, std::int64_t depth, ScoreForm form = ScoreForm::plain) {
    AttentionCase c{
        "", heads_inside, {.b = 4, .h = 12, .q = 1024, .k = 1024, .d = depth}, dtype, 0};
    c.form = form;
    if (form != ScoreForm::plain) c.back = 255;
    std::vector<Tensor> tensors(4, zeros(shape_of(c.layout.q, c.sizes), dtype));
    std::mt19937_64 random(suite_seed);
    if (const auto beside = tensor_beside(c, random)) tensors.push_back(*beside);
    const CompiledProgram step = compiled(tensors, step_of(c));
    const std::string suffix = "_" + std::string(name(dtype)) + "_" + std::to_string(depth) + "_" +
                               std::to_string(static_cast<int>(form));
    for (const bool is_open : {false, true}) {
      for (const KernelSource& kernel :
           kernels_of(step.program, suffix + (is_open ? "_open" : ""), {sm, true}, is_open)) {
        text += kernel.text.substr(kernel.kernel_begin);
        EXPECT_LE(kernel.shared_bytes, 99u << 10) << kernel.name;
        ++count;
      }
    }
  };
  add(DType::f32, 64);
  add(DType::f32, 128);
  for (const std::int64_t depth : {64, 128, 256}) add(DType::bf16, depth);
  add(DType::f16, 72);
  for (const ScoreForm form : {ScoreForm::capped, ScoreForm::documents}) {
    add(DType::f32, 64, form);
    add(DType::bf16, 64, form);
    add(DType::bf16, 128, form);
  }
  const gpu::Cubin cubin = gpu::compile({"attention.cu", text, GetParam()});
  const auto kernels = gpu::kernels_of(cubin);
  EXPECT_EQ(kernels.size(), count);
  for (const gpu::KernelResources& kernel : kernels) {
    const int most = kernel.name.find("_open") != std::string::npos ? test::spilled_sizes : 0;
    if (kernel.spills) {
      EXPECT_LE(kernel.spills->stored, most)
          << kernel.name << " with " << kernel.registers << " registers";
    }
    EXPECT_LE(kernel.stack_bytes, most) << kernel.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, AttentionNvrtcTest, testing::Values("sm_90a"));
INSTANTIATE_TEST_SUITE_P(SlowArchitectures, AttentionNvrtcTest,
                         testing::Values("sm_80", "sm_100a"));

}  // namespace
}  // namespace ein::test
