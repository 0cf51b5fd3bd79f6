// Groups of nests that share their rows, each one kernel: the text runs on the host, against the
// interpreter of the traced graph.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/graph.hpp>
#include <ein/nn.hpp>
#include "backend/backend.hpp"
#include "cuda/cubin.hpp"
#include "cuda/nvrtc.hpp"
#include "passes/contraction_order.hpp"
#include "passes/simplify.hpp"
#include "runtime/trace.hpp"
#include "schedule/gpu_group_rows.hpp"
#include "support/emitted_cases.hpp"
#include "support/nvrtc.hpp"

namespace ein::test {
namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

/// A function of tensors as ein::compile sees it, with nests in groups as on a GPU.
struct Traced {
  Graph graph;  // before any pass
  Tensors inputs;
  Program program;
};

Traced traced(const Function& function, const Tensors& arguments) {
  Traced t;
  engine::Trace trace;
  Tensors seen;
  for (const Tensor& x : arguments) seen.push_back(trace.argument(x, x.shape(), x.strides()));
  t.graph = trace.finish(function(seen));
  t.inputs = arguments;
  for (const Tensor& x : trace.captured()) t.inputs.push_back(x);
  std::vector<InputLayout> layouts;
  for (const Tensor& x : t.inputs) layouts.push_back({x.strides(), x.offset()});
  t.program = lower(order_contractions(simplify(t.graph)), layouts);
  engine::backend_of(cuda).group(t.program);
  return t;
}

/// What a function of one tensor passes back, given the cotangent of its result.
Function gradient_of(const std::function<Tensor(const Tensors&)>& f, std::size_t leaves) {
  return [=](const Tensors& x) {
    Tensors all = x, wanted;
    for (std::size_t i = 0; i < leaves; ++i) {
      all[i] = x[i].detach();
      all[i].requires_grad(true);
      wanted.push_back(all[i]);
    }
    return gradients(f(all), x.back(), wanted);
  };
}

/// A function with rows along k: of an x of b, q, k, a row of weights, a row of biases, and a
/// target for each row.
struct Rows {
  std::string name;
  std::function<Tensor(const Tensors&)> f;
  std::size_t differentiable = 1;  // of the arguments, how many
  bool is_scalar = false;          // one result for each row
};

const std::vector<Rows>& all_rows() {
  static const std::vector<Rows> rows{
      {"softmax", [](const Tensors& x) { return softmax(x[0], "b q [k]"); }},
      {"log_softmax", [](const Tensors& x) { return log_softmax(x[0], "b q [k]"); }},
      {"logsumexp",
       [](const Tensors& x) { return reduce(x[0], "b q k -> b q", Reduction::logsumexp); }, 1,
       true},
      {"layer_norm", [](const Tensors& x) { return layer_norm(x[0], x[1], x[2], "b q [k]"); }, 3},
      {"rms_norm", [](const Tensors& x) { return rms_norm(x[0], x[1], "b q [k]"); }, 2},
      {"cross_entropy",
       [](const Tensors& x) { return cross_entropy(x[0], x[3], "b q [k], b q -> b q"); }, 1, true},
      {"softmax_of_masked",
       [](const Tensors& x) { return softmax(tril(x[0], "... [i j]", 1, -INFINITY), "b q [k]"); }},
      {"norm_of_sum",
       [](const Tensors& x) { return layer_norm(x[0] + x[0] * x[0], x[1], x[2], "b q [k]"); }, 3},
  };
  return rows;
}

Function forward(const Rows& rows) {
  return [f = rows.f](const Tensors& x) { return Tensors{f(x)}; };
}

class EmitRowsTest : public EmitTest {
 protected:
  Case& add_rows(const Function& function, const Tensors& arguments, const Tolerance& tolerance) {
    Traced t = traced(function, arguments);
    Case c{std::move(t.graph), std::move(t.inputs), tolerance};
    c.program = std::move(t.program);
    for (std::size_t g = 0; g < c.program.groups.size(); ++g) {
      const auto emit = [&](const Program& of) {
        return codegen::emit(of, of.groups[g], {},
                             "_" + std::to_string(cases_.size()) + "_" + std::to_string(g));
      };
      c.kernels.push_back(is_open() ? emitted_open(c.program, emit) : emit(c.program));
      for (const KernelSource& kernel : c.kernels.back()) {
        host_.add(kernel);
        if (device_) device_->add(kernel);
        ++kernel_count_;
        for (int b : kernel.buffers) {
          EXPECT_TRUE(b < 0 || !c.program.buffers[static_cast<std::size_t>(b)].is_local)
              << kernel.text.substr(kernel.kernel_begin);
        }
      }
    }
    cases_.push_back(std::move(c));
    return cases_.back();
  }

  /// Random arguments of a function of rows, and the cotangent of its result.
  static Tensors arguments(const Rows& rows, const Shape& shape, DType dtype, Random& random,
                           bool is_plain) {
    std::normal_distribution<double> normal;
    const auto tensor = [&](const Shape& s) {
      Values values(static_cast<std::size_t>(numel(s)));
      for (double& value : values) value = normal(random);
      return is_plain ? make_tensor(values, s, dtype) : scattered(values, s, dtype, random);
    };
    const Shape row{shape[2]}, each{shape[0], shape[1]};
    Tensors all{tensor(shape), tensor(row), tensor(row)};
    Values targets(static_cast<std::size_t>(numel(each)));
    for (double& target : targets) target = static_cast<double>(below(random, shape[2]));
    all.push_back(make_tensor(targets, each, DType::i64));
    all.push_back(tensor(rows.is_scalar ? each : shape));
    return all;
  }

  static Tolerance tolerance_of(DType dtype) {
    if (dtype == DType::f64) return {1e-11, 1e-11};
    if (dtype == DType::f32) return {2e-5, 2e-5};
    // Values between nests are rounded; the interpreter's are not.
    const double eps = finfo(dtype).eps;
    return {4 * eps, 4 * eps};
  }

  void check_random_shapes(int half);
  void check_random_compositions(int half);
};

constexpr DType float_dtypes[] = {DType::f32, DType::bf16, DType::f16, DType::f64};

/// The first half of 240; the second is for `make test-long`.
void EmitRowsTest::check_random_shapes(int half) {
  constexpr std::int64_t ks[] = {2,   3,   5,   8,   16,   31,   64,   100, 128,
                                 129, 200, 384, 777, 1024, 1100, 2048, 3000};
  constexpr std::int64_t rows[] = {1, 2, 3, 5, 8, 17, 40};
  for (int i = half * 120; i < half * 120 + static_cast<int>(seeds_or(120)); ++i) {
    Random random(suite_seed() + static_cast<std::uint64_t>(i));
    const auto kinds = static_cast<int>(all_rows().size());
    const Rows& op = all_rows()[static_cast<std::size_t>(i % kinds)];
    const bool is_backward = i / kinds % 2 == 1;
    const DType dtype = float_dtypes[below(random, 4)];
    const std::int64_t k = ks[below(random, std::ssize(ks))];
    Shape shape{rows[below(random, std::ssize(rows))], rows[below(random, std::ssize(rows))], k};
    if (numel(shape) > 60000) shape = {2, 3, k};
    const Tensors all = arguments(op, shape, dtype, random, below(random, 2) == 0);
    add_rows(is_backward ? gradient_of(op.f, op.differentiable) : forward(op), all,
             tolerance_of(dtype));
  }
  check_all();
}

TEST_F(EmitRowsTest, RandomShapes) { check_random_shapes(0); }
TEST_F(EmitRowsTest, SlowOtherRandomShapes) { check_random_shapes(1); }

/// Rows too long for registers, one to a thread, across memory, few of them; and those with odd
/// strides.
TEST_F(EmitRowsTest, EveryWayToWalk) {
  Random random(suite_seed() + 1000);
  const auto check = [&](const Shape& shape, DType dtype, const std::string& ops) {
    for (const Rows& op : all_rows()) {
      if (ops.find(op.name + ";") == ops.npos) continue;
      for (bool is_backward : {false, true}) {
        const Tensors all = arguments(op, shape, dtype, random, true);
        const Case& c = add_rows(is_backward ? gradient_of(op.f, op.differentiable) : forward(op),
                                 all, tolerance_of(dtype));
        EXPECT_TRUE(c.kernels.at(0).at(0).name.starts_with("rows_")) << text_of(c);
      }
    }
  };
  const std::string all = "softmax;layer_norm;cross_entropy;rms_norm;log_softmax;";
  if (is_wanted(0)) check({1, 33, 32768}, DType::bf16, "softmax;");
  check({1, 2, 8000}, DType::f32, all);
  check({1, 33, 16384}, DType::f32, "softmax;");  // as many registers as there are
  check({1, 33, 16391}, DType::f32, "layer_norm;cross_entropy;");
  check({40, 50, 4}, DType::f32, all);
  check({40, 50, 3}, DType::bf16, "softmax;cross_entropy;log_softmax;");
  check({3, 5, 1016}, DType::bf16, all);
  check({9, 16, 256}, DType::f64, all);
  // Columns.
  for (std::int64_t q : {50, 300}) {
    const std::int64_t b = q == 50 ? 4 : 70;
    const Tensor x = arguments(all_rows()[0], {b, q, 60}, DType::f32, random, true)[0];
    const Case& c = add_rows([](const Tensors& y) { return Tensors{softmax(y[0], "b [q] k")}; },
                             {x}, tolerance_of(DType::f32));
    ASSERT_EQ(c.kernels.size(), 1u);
    EXPECT_NE(text_of(c).find("combine_rows"), std::string::npos) << text_of(c);
  }
  check_all();
}

/// So long that a group has them only where there are many.
TEST_F(EmitRowsTest, SlowManyLongRows) {
  Random random(suite_seed() + 1500);
  const Rows& op = all_rows()[0];
  for (bool is_backward : {false, true}) {
    const Tensors all = arguments(op, {2, 65, 40000}, DType::bf16, random, true);
    const Case& c = add_rows(is_backward ? gradient_of(op.f, op.differentiable) : forward(op), all,
                             tolerance_of(DType::bf16));
    EXPECT_TRUE(c.kernels.at(0).at(0).name.starts_with("rows_")) << text_of(c);
  }
  check_all();
}

TEST_F(EmitRowsTest, SmallFloats) {
  Random random(suite_seed() + 2000);
  for (DType dtype : {DType::f8e4m3, DType::f8e5m2}) {
    for (const Rows& op : all_rows())
      add_rows(forward(op), arguments(op, {3, 5, 48}, dtype, random, true), tolerance_of(dtype));
  }
  check_all();
}

/// Values on which a sum one by one, or an exponential without its maximum, would fail.
TEST_F(EmitRowsTest, HardValues) {
  Random random(20250117 + 3000);  // a log_softmax near 0 has few digits
  const std::int64_t k = 65536;
  Values large(2 * 100), offset(128 * k);
  for (double& value : large) value = static_cast<double>(below(random, 2000)) - 1000;
  for (std::size_t i = 100; i < 200; ++i) large[i] = i == 150 ? -3 : -INFINITY;
  for (double& value : offset) value = 0.1f;
  add_rows(
      [](const Tensors& x) {
        return Tensors{softmax(x[0], "r [k]"), log_softmax(x[0], "r [k]")};
      },
      {make_tensor(large, {2, 100})}, {2e-5, 1e-30});
  if (is_wanted(1)) {
    add_rows(
        [](const Tensors& x) {
          return Tensors{reduce(x[0], "r k -> r", Reduction::sum),
                         reduce(x[0] * x[0], "r k -> r", Reduction::sum)};
        },
        {make_tensor(offset, {128, k})}, {3e-7, 0});
  }
  check_all();
}

TEST_F(EmitRowsTest, RandomNumbersAndPositionsJoin) {
  Random random(suite_seed() + 4000);
  const Tensors all = arguments(all_rows()[3], {4, 8, 96}, DType::f32, random, true);
  Case& dropped = add_rows(
      [](const Tensors& x) {
        return Tensors{layer_norm(dropout(x[0], 0.25), x[1], x[2], "b q [k]")};
      },
      all, tolerance_of(DType::f32));
  dropped.origin = {99, 7};
  EXPECT_EQ(dropped.kernels.size(), 1u) << to_string(dropped.program);
  // A table's row for each, and a norm of it.
  const Case& embedded = add_rows(
      [](const Tensors& x) {
        const Tensor e = gather(x[0], x[1], "[v] d, b s -> b s d");
        return Tensors{rms_norm(e, "b s [d]"), e};
      },
      {random_tensor({30, 64}, DType::f32, random), positions({4, 9}, DType::i64, 30, random)},
      tolerance_of(DType::f32));
  EXPECT_EQ(embedded.kernels.size(), 1u) << to_string(embedded.program);
  for (double target : {-1.0, 96.0}) {
    Tensors wrong = all;
    Values targets(32, 5);
    targets[17] = target;
    wrong[3] = make_tensor(targets, {4, 8}, DType::i64);
    Case& c = add_rows(
        [](const Tensors& x) { return Tensors{cross_entropy(x[0], x[3], "b q [k], b q -> b q")}; },
        wrong, {});
    EXPECT_EQ(c.kernels.size(), 1u) << to_string(c.program);
    c.fault = std::to_string(static_cast<int>(target)) + " of 96";
  }
  check_all();
}

/// A random composition of calls on tensors of one shape, whose last values are the results.
Tensors composed(Tensors all, Random& random) {
  const auto any = [&] { return all[static_cast<std::size_t>(below(random, std::ssize(all)))]; };
  constexpr Reduction reductions[] = {Reduction::sum, Reduction::max, Reduction::mean,
                                      Reduction::logsumexp};
  for (std::int64_t step = 3 + below(random, 8); step > 0; --step) {
    const Tensor x = any(), y = all.back();
    const Reduction reduction = reductions[below(random, 4)];
    const auto make = [&]() -> Tensor {
      switch (below(random, 14)) {
        case 0:
          return softmax(y, "b q [k]");
        case 1:
          return softmax(x, "b [q] k");
        case 2:
          return softmax(x, "b [q k]");
        case 3:
          return y - reduce(x, "b q k -> b q 1", reduction);
        case 4:
          return x * reduce(y, "b q k -> b 1 k", reduction);
        case 5:
          return tanh(y + reduce(x, "b q k -> 1 1 k", reduction) * 0.1);
        case 6:
          return layer_norm(y, "b q [k]");
        case 7:
          return x + y;
        case 8:
          return exp(tanh(y)) * x;
        case 9:
          return tril(y, "... [i j]", 1);
        case 10:
          return cumsum(x * 0.1, "b q [k]");
        case 11: {
          // What is at another place of the row, or in another row.
          if (x.shape()[1] != x.shape()[2]) return x * 0.5;
          return y + rearrange(y * y, "b q k -> b k q");
        }
        case 12: {
          if (x.shape()[1] != x.shape()[2]) return y * 0.5;
          return y * rearrange(reduce(y, "b q k -> b q", reduction), "b k -> b 1 k");
        }
        default: {
          const Tensors parts{x.at({ein::every, slice(1, x.shape()[1])}),
                              y.at({ein::every, slice(0, 1)})};
          return pack(parts, "b * k").tensor;
        }
      }
    };
    all.push_back(make());
  }
  Tensors results{all.back()};
  for (std::int64_t more = below(random, 3); more > 0; --more) results.push_back(any() * 1.5);
  return results;
}

void EmitRowsTest::check_random_compositions(int half) {
  for (int i = half * 80; i < half * 80 + static_cast<int>(seeds_or(80)); ++i) {
    Random random(suite_seed() + 5000 + static_cast<std::uint64_t>(i));
    Shape shape{1 + below(random, 4), 2 + below(random, 9), 2 + below(random, 40)};
    if (i % 3 == 0) shape[2] = shape[1];
    Tensors inputs;
    for (int n = 0; n < 2; ++n) inputs.push_back(random_tensor(shape, DType::f64, random));
    add_rows([&](const Tensors& x) { return composed(x, random); }, inputs, {1e-9, 1e-9});
  }
  check_all();
}

TEST_F(EmitRowsTest, RandomCompositions) { check_random_compositions(0); }
TEST_F(EmitRowsTest, SlowOtherRandomCompositions) { check_random_compositions(1); }

// --- the pass ---

Traced traced_rows(const std::string& name, bool is_backward, const Shape& shape,
                   DType dtype = DType::f32) {
  const Shape row{shape[2]}, each{shape[0], shape[1]};
  for (const Rows& op : all_rows()) {
    if (op.name != name) continue;
    // Nobody reads them: gigabytes would take longer to fill than all else.
    const auto some = [](const Shape& s, DType d) {
      return Tensor(Storage::allocate(static_cast<std::size_t>(numel(s)) * size_of(d)), d, s,
                    contiguous_strides(s));
    };
    const Tensors all{some(shape, dtype), some(row, dtype), some(row, dtype),
                      some(each, DType::i64), some(op.is_scalar ? each : shape, dtype)};
    return traced(is_backward ? gradient_of(op.f, op.differentiable) : forward(op), all);
  }
  throw std::logic_error("no rows " + name);
}

TEST(GroupRowsTest, EachIsOneKernel) {
  for (const Rows& op : all_rows()) {
    const Traced forward = traced_rows(op.name, false, {8, 64, 100});
    EXPECT_EQ(forward.program.groups.size(), 1u) << op.name << "\n" << to_string(forward.program);
    const Traced backward = traced_rows(op.name, true, {8, 64, 100});
    int by_rows = 0;
    for (const Program::Group& group : backward.program.groups) by_rows += group.rows() != nullptr;
    EXPECT_EQ(by_rows, 1) << op.name << "\n" << to_string(backward.program);
    // Gradients of weights and biases are sums across the rows, or begin as those.
    if (op.differentiable == 1) {
      EXPECT_EQ(backward.program.groups.size(), 1u) << op.name << "\n"
                                                    << to_string(backward.program);
    }
  }
}

TEST(GroupRowsTest, WhatStaysWithinWantsNoMemory) {
  const Traced t = traced_rows("softmax", false, {8, 64, 100});
  for (std::size_t b = t.program.input_count; b < t.program.buffers.size(); ++b) {
    EXPECT_EQ(t.program.buffers[b].is_local, static_cast<int>(b) != t.program.results[0].buffer)
        << to_string(t.program);
  }
  // What is returned, and what a kernel behind the group reads, is written.
  const Traced both = traced(
      [](const Tensors& x) {
        const Tensor sum = x[0] + x[1];
        const Tensor norm = rms_norm(sum, "b q [k]");
        return Tensors{norm, reduce(norm * sum, "b q k -> k", Reduction::sum)};
      },
      {zeros({8, 64, 100}), zeros({8, 64, 100})});
  ASSERT_EQ(both.program.groups.size(), 2u) << to_string(both.program);
  int local = 0;
  for (const Program::Buffer& buffer : both.program.buffers) local += buffer.is_local;
  EXPECT_EQ(local, 1) << to_string(both.program);  // the mean
}

TEST(GroupRowsTest, WhatWouldIdleOrMixRowsStaysApart) {
  const auto groups = [](const Function& f, const Tensors& x) {
    const Traced t = traced(f, x);
    return t.program.groups.size() == t.program.nests.size();
  };
  const auto over_k = [](const Tensors& x) { return Tensors{softmax(x[0], "b [k]")}; };
  const auto over_b = [](const Tensors& x) { return Tensors{softmax(x[0], "[b] k")}; };
  EXPECT_TRUE(groups(over_k, {zeros({4, 100000})}));
  EXPECT_FALSE(groups(over_k, {zeros({400, 100000})}));
  EXPECT_TRUE(groups(over_b, {zeros({5000, 100})}));
  EXPECT_FALSE(groups(over_b, {zeros({30, 100})}));
  // Each row needs the sums of all.
  EXPECT_TRUE(groups(
      [](const Tensors& x) {
        const Tensor sums = reduce(x[0], "b k -> b", Reduction::sum);
        return Tensors{x[0] * reduce(sums, "b -> ", Reduction::max)};
      },
      {zeros({500, 100})}));
  // A matrix product reads its operands again for each row.
  EXPECT_TRUE(
      groups([](const Tensors& x) { return Tensors{exp(einsum(x[0], x[1], "m k, k n -> m n"))}; },
             {zeros({64, 32}), zeros({32, 64})}));
}

// A checkpoint computes again after what it saves memory for.
TEST(GroupRowsTest, WhatIsComputedAgainStaysLate) {
  const Traced t = traced(
      [](const Tensors& x) {
        Tensor a = x[0].detach();
        a.requires_grad(true);
        const Tensor y = checkpoint(
            [](const Tensor& z) { return softmax(exp(softmax(z, "b [k]")), "b [k]"); }, a);
        return gradients(reduce(tanh(y), "b k ->", Reduction::sum), Tensors{a});
      },
      {zeros({64, 100})});
  int again = 0;
  for (const Program::Group& group : t.program.groups) {
    std::set<Phase> phases;
    for (std::size_t n = group.first; n < group.first + group.count; ++n)
      phases.insert(t.program.nests[n].phase);
    again += phases.contains(Phase::recompute);
    EXPECT_FALSE(phases.contains(Phase::recompute) && phases.contains(Phase::forward))
        << to_string(t.program);
  }
  EXPECT_GT(again, 0) << to_string(t.program);
}

TEST(GroupRowsTest, GroupsThatAreThereStay) {
  Program p = traced_rows("softmax", false, {8, 64, 100}).program;
  p.groups = {{.first = 0, .count = 2, .form = Program::Group::Blocks{4, {0, 0}}}};
  group_rows(p, {}, {});
  ASSERT_EQ(p.groups.size(), 2u);
  ASSERT_TRUE(p.groups[0].blocks());
  EXPECT_EQ(p.groups[0].blocks()->count, 4);
  EXPECT_EQ(p.groups[1].first, 2u);
  ASSERT_TRUE(p.groups[1].rows());
  EXPECT_EQ(p.groups[1].rows()->axes, 1u);
}

// --- NVRTC ---

class NvrtcRowsTest : public testing::TestWithParam<std::string> {};

TEST_P(NvrtcRowsTest, NothingSpills) {
  SKIP_WITHOUT_NVRTC_FOR(GetParam());
  const int number = std::stoi(GetParam().substr(3));
  for (const Rows& op : all_rows()) {
    std::string text = codegen::vocabulary();
    std::size_t count = 0;
    for (std::int64_t k : {1024, 16384, 50257}) {
      if (k > 20000 && op.name != "cross_entropy" && op.name != "layer_norm") continue;
      for (bool is_backward : {false, true}) {
        const DType dtype = is_backward ? DType::f32 : DType::bf16;
        const Program p = traced_rows(op.name, is_backward, {16, 512, k}, dtype).program;
        for (const Program::Group& group : p.groups) {
          if (!group.rows()) continue;
          for (const KernelSource& kernel : codegen::emit(
                   p, group, {number, GetParam().back() == 'a'}, "_" + std::to_string(count++)))
            text += kernel.text.substr(kernel.kernel_begin);
        }
      }
    }
    const auto kernels = gpu::kernels_of(gpu::compile({"rows.cu", text, GetParam()}));
    EXPECT_EQ(kernels.size(), count);
    for (const gpu::KernelResources& kernel : kernels) {
      ASSERT_TRUE(kernel.spills);
      // Calls of functions that are not inlined keep a few registers in memory, and so does a norm
      // of long rows in f32, whose sums are of deviations and of their squares.
      EXPECT_LE(kernel.spills->stored, 32)
          << op.name << ", " << kernel.name << " with " << kernel.registers << " registers";
      EXPECT_LE(kernel.shared_bytes, 16 << 10) << kernel.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, NvrtcRowsTest, testing::Values("sm_80", "sm_90a"));
INSTANTIATE_TEST_SUITE_P(SlowArchitectures, NvrtcRowsTest, testing::Values("sm_100a"));

/// The text of two kernels, to be read by people: EIN_WRITE_GOLDEN=1 writes what the test expects.
TEST(GoldenRowsTest, TextIsWhatItWas) {
  const auto check = [](const std::string& name, DType dtype) {
    const Program p = traced_rows(name, false, {8, 64, 768}, dtype).program;
    const KernelSource kernel = codegen::emit(p, p.groups.at(0)).at(0);
    const std::string text = "// grid " + std::to_string(kernel.grid()[0]) + ", 1, 1, block " +
                             std::to_string(kernel.block[0]) + ", 1, 1\n" +
                             kernel.text.substr(kernel.kernel_begin) + "\n";
    const std::string path =
        EIN_TEST_DATA "/../golden/" + name + "_" + std::string(ein::name(dtype)) + ".cu";
    if (std::getenv("EIN_WRITE_GOLDEN")) write_bytes(path, text);
    EXPECT_EQ(read_bytes(path), text) << path;
  };
  check("softmax", DType::f32);
  check("layer_norm", DType::bf16);
}

}  // namespace
}  // namespace ein::test
