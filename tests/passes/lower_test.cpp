// From graphs to nests: what is fused, what costs nothing, and that the nests compute what the
// graph says.
#include "passes/lower.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

#include <ein/ein.hpp>
#include <ein/graph.hpp>
#include "ein/grammar/parse.hpp"
#include "graph/call.hpp"
#include "oracle/interpret.hpp"
#include "passes/contraction_order.hpp"
#include "runtime/call.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using Values = std::vector<double>;

Access plain(const std::vector<int>& axes) {
  Access access;
  for (int a : axes) access.push_back({0, {{a, 1}}});
  return access;
}

/// The nests of a call on contiguous operands.
Program program_of(Operation op, const char* text, const std::vector<Shape>& shapes,
                   Reduction reduction = Reduction::sum, DType dtype = DType::f32) {
  const auto reading = grammar::parse_pattern(text);
  std::vector<OperandType> types;
  std::vector<InputLayout> layouts;
  for (const Shape& shape : shapes) {
    types.push_back({shape, dtype});
    layouts.push_back({contiguous_strides(shape), 0});
  }
  const Graph graph = build_graph(
      {.op = op, .pattern = reading.buffer.pattern(text), .reduction = reduction}, types);
  return lower(order_contractions(graph), layouts);
}
Program reduction_of(Reduction reduction, DType dtype = DType::f32) {
  return program_of(Operation::reduce, "a b c -> a c", {{2, 30, 4}}, reduction, dtype);
}

TEST(LowerTest, ReductionsAreFewNests) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16}) {
    for (Reduction reduction : {Reduction::sum, Reduction::prod, Reduction::max, Reduction::min,
                                Reduction::any, Reduction::all, Reduction::mean}) {
      EXPECT_EQ(reduction_of(reduction, dtype).nests.size(), 1u)
          << name(reduction) << "\n"
          << to_string(reduction_of(reduction, dtype));
    }
    // The mean, the deviations from it, their squares, and the result; the maximum, then the
    // exponentials.
    for (Reduction reduction : {Reduction::var, Reduction::std}) {
      EXPECT_EQ(reduction_of(reduction, dtype).nests.size(), 4u)
          << to_string(reduction_of(reduction, dtype));
    }
    EXPECT_LE(reduction_of(Reduction::logsumexp, dtype).nests.size(), 3u)
        << to_string(reduction_of(Reduction::logsumexp, dtype));
  }
  const Program var = reduction_of(Reduction::var);
  // No intermediate result has more elements than the result.
  for (std::size_t b = 1; b < var.buffers.size(); ++b) EXPECT_EQ(var.buffers[b].elements, 8);
  EXPECT_FALSE(var.nests[0].epilogue.steps.empty());
}

TEST(LowerTest, ViewsAreNoNests) {
  EXPECT_EQ(program_of(Operation::rearrange, "a b -> b a", {{2, 3}}).nests.size(), 0u);
  EXPECT_EQ(program_of(Operation::repeat, "a b -> b a 3", {{2, 3}}).nests.size(), 0u);
  EXPECT_EQ(program_of(Operation::einsum, "a a -> a", {{3, 3}}).nests.size(), 0u);
  EXPECT_EQ(program_of(Operation::reduce, "a b -> b a", {{3, 3}}).nests.size(), 0u);
  EXPECT_EQ(program_of(Operation::rearrange, "a b -> (b a)", {{2, 3}}).nests.size(), 1u);
  // A contraction reads its operands as they lie, whatever the pattern makes of them.
  EXPECT_EQ(
      program_of(Operation::einsum, "b s (h d), b t h d -> b h s t", {{2, 5, 12}, {2, 6, 3, 4}})
          .nests.size(),
      1u);
  EXPECT_EQ(program_of(Operation::einsum, "i, j, k -> k j i", {{2}, {3}, {4}}).nests.size(), 2u);
}

TEST(LowerTest, PrintedNests) {
  EXPECT_EQ(to_string(program_of(Operation::reduce, "a b c -> a c", {{2, 30, 4}}, Reduction::mean)),
            "b0: input, 240 f32\n"
            "b1: 8 f32\n"
            "for a in 0..2\n"
            "  for c in 0..4\n"
            "    reduce b in 0..30\n"
            "      x0 = b0[120·a + 4·b + c]  : f32\n"
            "      b1[4·a + c] = sum x0, then (x0 / 30)  : f32 in f32\n"
            "return b1 (2, 4) strides (4, 1)\n");
  EXPECT_EQ(to_string(program_of(Operation::einsum, "i k, k j -> i j", {{2, 3}, {3, 4}},
                                 Reduction::sum, DType::f16)),
            "b0: input, 6 f16\n"
            "b1: input, 12 f16\n"
            "b2: 8 f16\n"
            "for i in 0..2\n"
            "  for j in 0..4\n"
            "    reduce k in 0..3\n"
            "      x0 = b0[3·i + k]  : f16\n"
            "      x1 = b1[j + 4·k]  : f16\n"
            "      b2[4·i + j] = sum (x0 * x1)  : f16 in f32\n"
            "return b2 (2, 4) strides (4, 1)\n");
  EXPECT_EQ(to_string(program_of(Operation::rearrange, "a b -> b a", {{2, 3}})),
            "b0: input, 6 f32\n"
            "return b0 (3, 2) strides (1, 3)\n");
}

/// The sizes of a nest's axes, and whether any is reduced.
std::vector<std::int64_t> sizes(const LoopNest& nest) {
  std::vector<std::int64_t> sizes;
  for (const auto& axis : nest.axes) sizes.push_back(axis.size);
  return sizes;
}

TEST(LowerTest, SimplifyMergesWhatEveryOperandWalksAsOne) {
  const auto nest_of = [](const char* pattern, const Shape& shape,
                          Reduction reduction = Reduction::sum) {
    return program_of(Operation::reduce, pattern, {shape}, reduction).nests.at(0);
  };
  EXPECT_EQ(sizes(nest_of("a b c d -> a b", {2, 3, 4, 5})), (std::vector<std::int64_t>{6, 20}));
  EXPECT_EQ(sizes(nest_of("a b c d -> b a", {2, 3, 4, 5})), (std::vector<std::int64_t>{2, 3, 20}));
  EXPECT_EQ(sizes(nest_of("a b c d ->", {2, 3, 4, 5})), (std::vector<std::int64_t>{120}));
  EXPECT_EQ(sizes(nest_of("a b c d -> b d", {2, 3, 4, 5})),
            (std::vector<std::int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(sizes(nest_of("a 1 b 1 -> 1 a", {2, 1, 3, 1})), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(sizes(nest_of("a b c -> c", {2, 3, 1})), (std::vector<std::int64_t>{6}));
  EXPECT_EQ(nest_of("a b c d -> a b", {2, 3, 4, 5}).axes[0].name, "a b");
  // Reduced and kept axes stay apart even where they lie side by side.
  const LoopNest nest = nest_of("a b -> a", {2, 3});
  EXPECT_FALSE(nest.axes[0].reduced);
  EXPECT_TRUE(nest.axes[1].reduced);
}

TEST(LowerTest, SimplifyLeavesExpressionsThatKnowTheirPlace) {
  LoopNest nest;
  nest.axes = {{"a", 2, false}, {"b", 3, false}};
  nest.output = {.strides = {3, 1}};
  nest.body = Ex::index(1);
  simplify(nest);
  EXPECT_EQ(nest.axes.size(), 2u);
  nest.body = Ex(1.0);
  simplify(nest);
  EXPECT_EQ(sizes(nest), std::vector<std::int64_t>{6});
}

TEST(LowerTest, StridesOfEmptyTensorsAndOfSizeOneMayBeAnything) {
  const std::int64_t most = INT64_MAX;
  const auto storage = ones({8}).storage();
  const Tensor empty(storage, DType::f32, {0, 2}, {most, most});
  const Tensor row(storage, DType::f32, {1, 8}, {most, 1});
  EXPECT_EQ(rearrange(empty, "a (b c) -> (c a) b", axis("b", 2)).shape(), (Shape{0, 2}));
  EXPECT_EQ(reduce(empty, "a b -> b", "sum").to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(einsum(empty, empty, "a b, a c -> b c").to_vector<float>(), std::vector<float>(4, 0));
  EXPECT_EQ(empty.clone().shape(), (Shape{0, 2}));
  EXPECT_EQ((empty + 1).shape(), (Shape{0, 2}));
  EXPECT_EQ(rearrange(row, "(a 1) b -> b a").to_vector<float>(), std::vector<float>(8, 1));
  EXPECT_EQ(reduce(row, "a b -> b", "sum").to_vector<float>(), std::vector<float>(8, 1));
  EXPECT_EQ(einsum(row, row, "a b, c b -> a c").item(), 8);
  EXPECT_EQ((row * 2).to_vector<float>(), std::vector<float>(8, 2));
  EXPECT_EQ(row.clone().to_vector<float>(), std::vector<float>(8, 1));
}

// --- fusion of graphs that are more than one call ---

/// Graphs over three axes of which every value has some, one dimension each.
class RandomGraph {
 public:
  explicit RandomGraph(std::mt19937_64& random) : random_(random) {
    for (int a = 0; a < 3; ++a) sizes_.push_back(1 + below(5));
    if (below(15) == 0) sizes_[1] = 0;
    if (below(15) == 0) sizes_[2] = 600;  // more than a strip
    for (int i = 0; i < 2; ++i) {
      add({.kind = OpKind::input, .dtype = DType::f64}, some_axes(), {});
    }
    if (below(4) == 0) {
      const std::vector<int> axes = some_axes();
      const Ex formula = axes.empty() || below(2) == 0 ? Ex(0.75) : Ex::index(0) * 0.5;
      add({.kind = OpKind::map, .dtype = DType::f64, .expr = formula, .compute = DType::f64}, axes,
          {});
    }
    const std::int64_t ops = 1 + below(6);
    for (std::int64_t i = 0; i < ops; ++i) add_one();
    graph_.outputs = {last()};
    if (below(3) == 0) graph_.outputs.push_back(static_cast<ValueId>(below(last() + 1)));
    verify(graph_);
  }
  const Graph& graph() const { return graph_; }

 private:
  std::int64_t below(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }
  ValueId last() const { return static_cast<ValueId>(graph_.ops.size()) - 1; }
  /// Mostly the value made last, so that chains come about.
  ValueId some_value() { return below(3) > 0 ? last() : static_cast<ValueId>(below(last() + 1)); }

  std::vector<int> some_axes() {
    std::vector<int> axes;
    for (int a = 0; a < 3; ++a) {
      if (below(3) > 0) axes.push_back(a);
    }
    std::shuffle(axes.begin(), axes.end(), random_);
    return axes;
  }

  /// Adds an operation over the axes of its inputs and of its result, numbered in some order.
  void add(Op op, const std::vector<int>& dims, const std::vector<ValueId>& inputs) {
    std::vector<int> axes;
    const auto include = [&](const std::vector<int>& list) {
      for (int a : list) {
        if (std::find(axes.begin(), axes.end(), a) == axes.end()) axes.push_back(a);
      }
    };
    include(dims);
    for (ValueId input : inputs) include(dims_[static_cast<std::size_t>(input)]);
    std::shuffle(axes.begin(), axes.end(), random_);
    const auto access = [&](const std::vector<int>& of) {
      std::vector<int> renumbered;
      for (int a : of)
        renumbered.push_back(
            static_cast<int>(std::find(axes.begin(), axes.end(), a) - axes.begin()));
      return plain(renumbered);
    };
    for (int a : dims) op.shape.push_back(sizes_[static_cast<std::size_t>(a)]);
    if (op.kind != OpKind::input) {
      for (int a : axes)
        op.axes.push_back(
            {std::string(1, static_cast<char>('i' + a)), sizes_[static_cast<std::size_t>(a)]});
      for (ValueId input : inputs)
        op.reads.push_back(access(dims_[static_cast<std::size_t>(input)]));
      op.write = access(dims);
    }
    op.inputs = inputs;
    dims_.push_back(dims);
    graph_.ops.push_back(std::move(op));
  }

  Ex some_formula(std::size_t inputs, std::size_t axes) {
    const Ex x = Ex::input(0), y = Ex::input(static_cast<int>(inputs) - 1);
    switch (below(axes > 0 ? 8 : 7)) {
      case 0:
        return x + y;
      case 1:
        return x - y * 0.5;
      case 2:
        return Ex::apply(ScalarOp::max, x, y);
      case 3:
        return Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::lt, x, Ex(0.5)), y, x);
      case 4:
        return Ex::apply(ScalarOp::tanh, x) + y;
      case 5:
        return Ex::apply(ScalarOp::abs, x);
      case 6:
        return Ex(0.25) * x + 1.0;
      default:
        return x + Ex::index(static_cast<int>(below(static_cast<std::int64_t>(axes))));
    }
  }

  void add_one() {
    const ValueId x = some_value();
    const std::vector<int> own = dims_[static_cast<std::size_t>(x)];
    std::vector<int> fewer, more = own;
    for (int a : own) {
      if (below(2) == 0) fewer.push_back(a);
    }
    for (int a = 0; a < 3; ++a) {
      if (std::find(own.begin(), own.end(), a) == own.end() && below(2) == 0) more.push_back(a);
    }
    std::shuffle(more.begin(), more.end(), random_);
    switch (below(6)) {
      case 0:
        return add({.kind = OpKind::reindex, .dtype = DType::f64}, more, {x});
      case 1:
      case 2: {
        // No infinities: the largest of none, and products of very many.
        const Combine combines[] = {Combine::sum, Combine::any, Combine::all,
                                    Combine::max, Combine::min, Combine::prod};
        const Combine combine = combines[below(sizes_[1] == 0 ? 3 : sizes_[2] > 5 ? 5 : 6)];
        return add({.kind = OpKind::reduce, .dtype = DType::f64, .combine = combine}, fewer, {x});
      }
      case 3: {
        const ValueId y = some_value();
        std::vector<int> all = own;
        for (int a : dims_[static_cast<std::size_t>(y)]) {
          if (std::find(all.begin(), all.end(), a) == all.end()) all.push_back(a);
        }
        std::erase_if(all, [&](int) { return below(2) == 0; });
        return add({.kind = OpKind::contract, .dtype = DType::f64}, all, {x, y});
      }
      default: {
        std::vector<ValueId> inputs{x};
        std::vector<int> all = more;
        if (below(2) == 0) {
          inputs.push_back(some_value());
          for (int a : dims_[static_cast<std::size_t>(inputs[1])]) {
            if (std::find(all.begin(), all.end(), a) == all.end()) all.push_back(a);
          }
        }
        const Ex formula = some_formula(inputs.size(), all.size());
        return add(
            {.kind = OpKind::map, .dtype = DType::f64, .expr = formula, .compute = DType::f64}, all,
            inputs);
      }
    }
  }

  std::mt19937_64& random_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::vector<int>> dims_;  // of each value: its axes
  Graph graph_;
};

/// Whether a graph with tanh asks if a sum is 0 that is nearly so: by the order of its additions it
/// may be 0 or the rest of a rounding.
bool asks_about_roundings(Graph graph, const std::vector<Values>& inputs) {
  const auto has_tanh = [](const Op& op) {
    return std::any_of(op.expr.steps.begin(), op.expr.steps.end(),
                       [](const ScalarStep& step) { return step.op == ScalarOp::tanh; });
  };
  if (std::none_of(graph.ops.begin(), graph.ops.end(), has_tanh)) return false;
  graph.outputs.clear();
  for (const Op& op : graph.ops) {
    if (op.kind == OpKind::reduce && (op.combine == Combine::any || op.combine == Combine::all))
      graph.outputs.push_back(op.inputs[0]);
  }
  for (const Values& values : Interpreter<>::run(graph, inputs)) {
    if (std::any_of(values.begin(), values.end(), [](double x) { return std::abs(x) < 1e-9; }))
      return true;
  }
  return false;
}

TEST(LowerTest, RandomGraphsComputeWhatTheInterpreterDoes) {
  const std::uint64_t seed = 20240613 + test::first_seed();
  std::cout << "seed " << seed << "\n";
  const int cases = static_cast<int>(test::seeds_or(4000));
  std::size_t operations = 0, nests = 0, compared = 0;
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    std::mt19937_64 random(seed + static_cast<std::uint64_t>(i));
    const Graph graph = RandomGraph(random).graph();
    SCOPED_TRACE("case " + std::to_string(i) + "\n" + to_string(graph));
    std::vector<Values> inputs;
    std::vector<Tensor> tensors;
    for (const Op& op : graph.ops) {
      if (op.kind != OpKind::input) continue;
      inputs.emplace_back(static_cast<std::size_t>(numel(op.shape)));
      for (double& x : inputs.back())
        x = static_cast<double>(std::uniform_int_distribution<int>(-4, 4)(random)) / 2;
      tensors.push_back(
          test::scattered_tensor(op.shape, DType::f64, std::vector<bool>(op.shape.rank()), random));
      test::set_values(tensors.back(), inputs.back());
    }
    std::vector<const Tensor*> operands;
    for (const Tensor& x : tensors) operands.push_back(&x);
    const auto plan = std::make_shared<const engine::Plan>("test", graph, operands, OrderOptions());
    SCOPED_TRACE(to_string(plan->bound().compiled().program()));
    for (const Op& op : graph.ops)
      operations += op.kind != OpKind::input && op.kind != OpKind::reindex;
    nests += plan->bound().compiled().program().nests.size();
    const std::vector<Tensor> results = engine::run(*plan, operands);
    if (asks_about_roundings(graph, inputs)) continue;
    const std::vector<Values> want = Interpreter<>::run(graph, inputs);
    ASSERT_EQ(results.size(), want.size());
    for (std::size_t r = 0; r < want.size(); ++r) {
      EXPECT_EQ(results[r].shape(), graph.op(graph.outputs[r]).shape);
      const Values got = test::get_values(results[r]);
      for (std::size_t e = 0; e < got.size(); ++e) {
        // Near the end of the range an order of summation is a matter of 0 times infinity.
        if (!(std::abs(want[r][e]) < 1e100)) continue;
        ++compared;
        ASSERT_LE(std::abs(got[e] - want[r][e]), 1e-9 * (1 + std::abs(want[r][e])))
            << "result " << r << ", element " << e << ": " << got[e] << ", ought to be "
            << want[r][e];
      }
    }
  }
  EXPECT_LT(nests, operations) << "nothing is ever fused";
  EXPECT_GT(compared, 10u * cases);
}

TEST(LowerTest, CopiesWriteUpwards) {
  const Program::Result from{0, DType::f32, {4, 6}, {6, 1}, 0},
      to{1, DType::f32, {4, 6}, {-6, -1}, 23};
  const LoopNest nest = copy_nest(from, to);
  ASSERT_EQ(nest.axes.size(), 1u) << to_string(nest);
  EXPECT_EQ(nest.output.offset, 0);
  EXPECT_EQ(nest.output.strides[0], 1);
  EXPECT_EQ(nest.inputs[0].offset, 23);
  EXPECT_EQ(nest.inputs[0].strides[0], -1);
  const Program::Result none{1, DType::f32, {0, 6}, {-6, 1}, 0};
  EXPECT_EQ(copy_nest({0, DType::f32, {0, 6}, {6, 1}, 0}, none).output.offset, 0);
}

TEST(LowerTest, MapsAreFusedIntoTheirOneUser) {
  Graph graph;
  const auto value = [&](Op op) {
    graph.ops.push_back(std::move(op));
    return static_cast<ValueId>(graph.ops.size()) - 1;
  };
  const auto map = [&](ValueId x, const Ex& formula) {
    return value({.kind = OpKind::map,
                  .shape = {7},
                  .inputs = {x},
                  .axes = {{"i", 7}},
                  .reads = {plain({0})},
                  .write = plain({0}),
                  .expr = formula});
  };
  const ValueId x = value({.kind = OpKind::input, .shape = {7}});
  const ValueId y = map(map(map(x, Ex::input(0) * 2.0), Ex::input(0) + 1.0),
                        Ex::apply(ScalarOp::exp, Ex::input(0)));
  graph.outputs = {y};
  const InputLayout layout{{1}, 0};
  EXPECT_EQ(lower(graph, {&layout, 1}).nests.size(), 1u);
  // One that two operations use, or that is a result itself, is computed once and stored.
  graph.outputs = {y, y - 1};
  EXPECT_EQ(lower(graph, {&layout, 1}).nests.size(), 2u);
  graph.outputs = {value({.kind = OpKind::map,
                          .shape = {7},
                          .inputs = {y, y - 2},
                          .axes = {{"i", 7}},
                          .reads = {plain({0}), plain({0})},
                          .write = plain({0}),
                          .expr = Ex::input(0) * Ex::input(1)})};
  EXPECT_EQ(lower(graph, {&layout, 1}).nests.size(), 2u);
}

}  // namespace
}  // namespace ein
