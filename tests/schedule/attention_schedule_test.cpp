// The schedules of attention and of its gradients: executed in double precision against the nests
// that they stand for, and as machine code against the interpreter.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>

#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/parallel.hpp>
#include "cpu/kernel.hpp"
#include "cpu/scheduled.hpp"
#include "oracle/execute.hpp"
#include "oracle/interpret.hpp"
#include "passes/find_attention.hpp"
#include "schedule/cpu_choose.hpp"
#include "schedule/cpu_group_nests.hpp"
#include "support/attention_cases.hpp"
#include "support/attention_step.hpp"
#include "support/grouped_programs.hpp"
#include "support/random_nests.hpp"
#include "support/row_code.hpp"
#include "support/seeds.hpp"

namespace ein::test {
namespace {

AttentionCase random_case(std::uint64_t seed, std::int64_t most) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % n); };
  const AttentionLayout layouts[] = {heads_outside, heads_inside, grouped, turned};
  AttentionCase c{.name = "seed " + std::to_string(seed)};
  const std::int64_t layout = below(4);
  c.layout = layouts[layout];
  c.sizes = {1 + below(2), 2 + below(2), 2 + below(most), 2 + below(most), 1 + below(40), 2};
  c.backward = below(3) != 0;
  if (below(3) != 0) c.reach = below(2) == 0 ? 0 : below(most);
  // Rows of other dtypes lie side by side.
  constexpr DType dtypes[] = {DType::f32, DType::bf16, DType::f16};
  const DType dtype = dtypes[below(3)];
  if (layout != 3) c.dtype = dtype;
  if (below(3) == 0) c.back = below(most);
  if (below(2) == 0) c.form = score_forms[below(std::ssize(score_forms))];
  // In 16 bits the nests round scores, which tiles do not.
  if (c.form != ScoreForm::plain) c.dtype = DType::f32;
  // Each query sees a key.
  if (c.form == ScoreForm::padded) c.back.reset();
  if (c.form == ScoreForm::documents || c.back) c.sizes.k = std::max(c.sizes.k, c.sizes.q);
  return c;
}

/// The target with tiles and numbers of heads for small cases.
Target with_small_tiles(const Target& target, std::uint64_t seed) {
  Target small = with_tiles(target, 3 + static_cast<std::int64_t>(seed % 30),
                            2 + static_cast<std::int64_t>(seed / 30 % 30));
  small.least_heads = seed % 2 == 0 ? 1 : 1000;
  return small;
}

CompiledProgram grouped_for(const AttentionCase& c, std::uint64_t seed, const Target& target) {
  return compiled(
      tensors_of(c, seed), step_of(c),
      [&](Program& program, std::span<const int> kept) { group_for(target, program, kept); });
}

/// Each form, with and without gradients: none is left to matrices of scores.
TEST(AttentionSchedules, EveryFormIsFound) {
  for (ScoreForm form : score_forms) {
    for (bool backward : {false, true}) {
      for (bool is_masked : {false, true}) {
        AttentionCase c{.name = "", .backward = backward, .form = form};
        if (is_masked) c.reach = 0;
        if (is_masked && form != ScoreForm::padded) c.back = 7;
        const CompiledProgram step = grouped_for(c, 1, with_small_tiles(unit_steps_target(), 1));
        EXPECT_EQ(attentions(step.program).size(), backward ? 2 : 1)
            << "form " << static_cast<int>(form) << (is_masked ? " masked" : "") << '\n'
            << to_string(step.program);
      }
    }
  }
}

TEST(AttentionSchedules, OfRandomCases) {
  std::size_t found = 0;
  for_seeds(150, [&](unsigned seed) {
    const AttentionCase c = random_case(seed, 12);
    const Target target = with_small_tiles(unit_steps_target(), seed);
    const CompiledProgram step = grouped_for(c, seed, target);
    const Program& program = step.program;
    std::vector<Size> elements;
    for (const Program::Buffer& buffer : program.buffers) elements.push_back(buffer.elements);
    DoubleBuffers want = buffers_of(step), got = want;
    for (const LoopNest& nest : program.nests) execute(nest, want);
    std::string text = to_string(program);
    for (const Program::Group& group : program.groups) {
      const Schedule schedule = choose(program, group, target);
      text += to_string(schedule);
      ASSERT_NO_THROW(verify(schedule, elements)) << text;
      ASSERT_NO_THROW(execute(schedule, got, seed)) << text;
      found += group.attention() != nullptr;
    }
    for (const Program::Result& result : program.results) {
      const auto b = static_cast<std::size_t>(result.buffer);
      for (std::size_t i = 0; i < want[b].size(); ++i)
        ASSERT_NEAR(got[b][i], want[b][i], 1e-9 * std::max(1.0, std::abs(want[b][i])))
            << "b" << b << "[" << i << "]\n"
            << text;
    }
  });
  EXPECT_GT(found, at_least(150));
}

TEST(AttentionSchedules, CodeOfRandomCases) {
  SKIP_WITHOUT_ROW_CODE;
  const int usual = num_threads();
  std::size_t found = 0;
  for_seeds(60, [&](unsigned seed) {
    const AttentionCase c = random_case(seed, 150);
    const Target target = with_small_tiles(host::RowCode::target(), seed);
    const CompiledProgram step = grouped_for(c, seed, target);
    const Program& program = step.program;
    std::vector<std::unique_ptr<host::Kernel>> kernels;
    for (const Program::Group& group : program.groups) {
      found += group.attention() != nullptr;
      kernels.push_back(group.attention() ? host::make_kernel(choose(program, group, target))
                                          : host::make_kernel(program, group));
      ASSERT_TRUE(kernels.back());
    }
    std::vector<std::vector<double>> of_threads[2];
    for (int threads : {1, 2}) {
      set_num_threads(threads);
      std::vector<std::shared_ptr<Storage>> storages;
      std::vector<std::byte*> buffers;
      for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const Program::Buffer& buffer = program.buffers[b];
        const bool is_input = b < step.inputs.size();
        // What is local has no memory: its use would be seen.
        storages.push_back(is_input ? step.inputs[b].storage()
                           : buffer.is_local
                               ? nullptr
                               : Storage::allocate(static_cast<std::size_t>(buffer.elements) *
                                                   size_of(buffer.dtype)));
        buffers.push_back(storages.back() ? storages.back()->data() : nullptr);
        if (!is_input && storages.back())
          std::fill_n(buffers.back(), storages.back()->bytes(), std::byte{0xFF});
      }
      for (const auto& kernel : kernels) {
        const auto workspace = Storage::allocate(kernel->workspace_bytes(threads) + 1);
        kernel->run({buffers, workspace->data(), {}, threads});
      }
      for (const Program::Result& result : program.results)
        of_threads[threads - 1].push_back(
            get_values(Tensor(storages[static_cast<std::size_t>(result.buffer)], result.dtype,
                              result.shape, result.strides, result.offset)));
    }
    set_num_threads(usual);
    ASSERT_EQ(of_threads[0], of_threads[1]) << "threads change a result";
    std::vector<std::vector<double>> values;
    for (const Tensor& x : step.inputs) values.push_back(get_values(x));
    const auto want = Interpreter<>::run(step.graph, values);
    const double tolerance = c.dtype == DType::bf16 ? 0.02 : c.dtype == DType::f16 ? 0.003 : 1e-5;
    for (std::size_t r = 0; r < want.size(); ++r) {
      double scale = 0;
      for (double x : want[r]) scale = std::max(scale, std::abs(x));
      for (std::size_t i = 0; i < want[r].size(); ++i)
        ASSERT_NEAR(of_threads[0][r][i], want[r][i], tolerance * scale)
            << "result " << r << "[" << i << "]\n"
            << to_string(program);
    }
  });
  EXPECT_GT(found, at_least(60));
}

// Numbers that softmax meets: scores of -inf, of inf, of NaN, and far apart.
TEST(AttentionSchedules, SpecialScoresAreThoseOfTheNests) {
  SKIP_WITHOUT_ROW_CODE;
  const std::int64_t n = 300, d = 16;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double special : {1e4, -1e4, 1e30, infinity, -infinity, std::nan("")}) {
    std::vector<double> values(static_cast<std::size_t>(n * d), 0.25);
    values[17 * 16 + 3] = special;
    const Tensor x = make_tensor(values, {1, 1, n, d}, DType::f32);
    const Tensor ones = full({1, 1, n, d}, 1.0);
    const auto step = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
      return attend(heads_outside, 0, q, k, v, d);
    };
    auto f = compile(step);
    for (const auto& [q, k] : {std::pair{x, ones}, {ones, x}}) {
      const std::vector<double> got = get_values(f(q, k, ones)),
                                want = get_values(step(q, k, ones));
      for (std::size_t i = 0; i < want.size(); ++i) {
        if (std::isnan(want[i]))
          EXPECT_TRUE(std::isnan(got[i])) << special << " at " << i << ": " << got[i];
        else
          EXPECT_NEAR(got[i], want[i], 1e-5) << special << " at " << i;
      }
    }
  }
}

// Down to the least number that is no infinity, where others of a tile are hidden, too.
TEST(AttentionSchedules, LowScoresAreThoseOfTheNests) {
  SKIP_WITHOUT_ROW_CODE;
  const std::int64_t n = 300, d = 16;
  for (const double score : {-1e30, -3.2e38, -3.4e38}) {
    const Tensor q = full({1, 1, n, d}, 1.0), k = full({1, 1, n, d}, score / d);
    const Tensor v = arange(static_cast<double>(n * d)).view({1, 1, n, d});
    for (const bool is_causal : {false, true}) {
      for (const double scale : {1.0, 0.001}) {
        const auto step = [&](const Tensor& x) {
          const Tensor scores = einsum(x, k, "b h q d, b h k d -> b h q k") * scale;
          return einsum(softmax(is_causal ? tril(scores, "... [i j]", 0,
                                                 -std::numeric_limits<double>::infinity())
                                          : scores,
                                "b h q [k]"),
                        v, "b h q k, b h k w -> b h q w");
        };
        const std::vector<double> got = get_values(compile(step)(q)), want = get_values(step(q));
        for (std::size_t i = 0; i < want.size(); ++i)
          ASSERT_NEAR(got[i], want[i], 1e-5 * (1 + want[i]))
              << score << ' ' << scale << " at " << i;
      }
    }
  }
}

TEST(AttentionSchedules, NoMatrixOfScoresIsInMemory) {
  SKIP_WITHOUT_ROW_CODE;
  for (const std::int64_t d : {12, 20, 32}) {
    const AttentionCase c{
        "memory", heads_outside, {.b = 2, .h = 3, .q = 320, .k = 320, .d = d}, DType::f32, 0, true};
    const std::vector<Tensor> x = tensors_of(c, 1);
    const Function step = step_of(c);
    auto f = compile([&](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g) {
      return step(std::vector{q, k, v, g});
    });
    const std::vector<Tensor> got = f(x[0], x[1], x[2], x[3]), want = step(x);
    for (std::size_t r = 0; r < want.size(); ++r) {
      const std::vector<double> a = get_values(got[r]), b = get_values(want[r]);
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4) << r;
    }
    const std::size_t matrix = 2 * 3 * 320 * 320 * 4,
                      operand = matrix / 320 * static_cast<std::size_t>(d);
    EXPECT_LT(f.memory().arena, matrix / 4);
    // Operands, results and sums for each query, some of them several times; no matrix.
    EXPECT_LT((f.cost().bytes_read + f.cost().bytes_written).approximate(), 24.0 * operand);
  }
}

// The layer's projections, biases and loss are groups beside attention.
TEST(AttentionSchedules, ALayerTrainsAsEagerly) {
  SKIP_WITHOUT_ROW_CODE;
  const nn::Attention layer(32, 2, true, 0);
  const Tensor x = randn({2, 544, 32}), y = randn({2, 544, 32});
  for (const auto autocast : {std::optional<DType>(), std::optional(DType::bf16)}) {
    auto step = compile(
        [&](const Tensor& a, const Tensor& b) { return attention_step(layer, a, b, autocast); });
    const std::vector<Tensor> got = step(x, y), want = attention_step(layer, x, y, autocast);
    EXPECT_NE(step.text().find("as the gradients of attention"), std::string::npos);
    EXPECT_NE(step.text().find("each key in 0..544 by "), std::string::npos);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t r = 0; r < want.size(); ++r) {
      const std::vector<double> a = get_values(got[r]), b = get_values(want[r]);
      double scale = 0;
      for (double value : b) scale = std::max(scale, std::abs(value));
      for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], (autocast ? 0.03 : 1e-4) * scale) << r << " at " << i;
    }
  }
}

// Where only some gradients are wanted, their nests do not read all that the gradients' schedule
// computes the scores from: those values must not give their memory to others before.
TEST(AttentionSchedules, OperandsStayForTheGradients) {
  SKIP_WITHOUT_ROW_CODE;
  const Tensor x = randn({1, 3, 320, 16}), g = randn({1, 3, 320, 16}), w = randn({16, 16}) * 0.25;
  const auto turned_by = [](const Tensor& a, const Tensor& by) {
    return einsum(a, by, "b h s d, d e -> b h s e");
  };
  for (int wanted = 1; wanted < 8; ++wanted) {
    const auto step = [&](const Tensor& input, const Tensor& weight) {
      const Tensor leaf = weight.detach();
      leaf.requires_grad(true);
      const auto of = [&](int bit) { return wanted >> bit & 1 ? leaf : weight; };
      const Tensor q = turned_by(input, of(0)), k = turned_by(input + 1, of(1)),
                   v = turned_by(input - 1, of(2));
      const Tensor out = attend(heads_outside, 0, q, k, v, 16);
      const Tensor later = turned_by(sin(turned_by(sin(turned_by(out, weight)), weight)), weight);
      return std::vector{later, gradients(later, g, std::vector{leaf}).front()};
    };
    auto f = compile(step);
    const std::vector<Tensor> got = f(x, w), want = step(x, w);
    for (std::size_t r = 0; r < want.size(); ++r) {
      const std::vector<double> a = get_values(got[r]), b = get_values(want[r]);
      double scale = 0;
      for (double value : b) scale = std::max(scale, std::abs(value));
      for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], 1e-4 * scale) << wanted << ": " << r << " at " << i;
    }
  }
}

}  // namespace
}  // namespace ein::test
