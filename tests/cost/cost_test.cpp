// The cost model against an interpreter whose numbers count what is done to them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include <ein/call.hpp>
#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>

#include "cost/scope.hpp"
#include "ein/grammar/parse.hpp"
#include "graph/call.hpp"
#include "oracle/interpret.hpp"
#include "passes/contraction_order.hpp"
#include "passes/lower.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

/// What has been done to Counted numbers since reset().
struct Done {
  std::uint64_t mul = 0, add = 0, div = 0, compare = 0;
  std::map<ScalarOp, std::uint64_t> functions;
};
Done done;

struct Counted {
  double value = 0;
  Counted() = default;
  explicit Counted(double v) : value(v) {}
  friend Counted operator+(Counted a, Counted b) { return ++done.add, Counted(a.value + b.value); }
  friend Counted operator-(Counted a, Counted b) { return ++done.add, Counted(a.value - b.value); }
  friend Counted operator*(Counted a, Counted b) { return ++done.mul, Counted(a.value * b.value); }
  friend Counted operator/(Counted a, Counted b) { return ++done.div, Counted(a.value / b.value); }
  friend bool operator<(Counted a, Counted b) { return ++done.compare, a.value < b.value; }
  friend bool operator<=(Counted a, Counted b) { return ++done.compare, a.value <= b.value; }
  friend bool operator>(Counted a, Counted b) { return ++done.compare, a.value > b.value; }
  friend bool operator>=(Counted a, Counted b) { return ++done.compare, a.value >= b.value; }
  friend bool operator==(Counted a, Counted b) { return ++done.compare, a.value == b.value; }
  friend bool operator!=(Counted a, Counted b) { return ++done.compare, a.value != b.value; }
  friend Counted minimum(Counted a, Counted b) {
    return ++done.compare, Counted(std::fmin(a.value, b.value));
  }
  friend Counted maximum(Counted a, Counted b) {
    return ++done.compare, Counted(std::fmax(a.value, b.value));
  }
  friend Counted select(Counted c, Counted a, Counted b) {
    return ++done.compare, c.value != 0 ? a : b;
  }
  friend Counted both(Counted a, Counted b) {
    return ++done.compare, Counted(a.value != 0 && b.value != 0);
  }
  friend Counted either(Counted a, Counted b) {
    return ++done.compare, Counted(a.value != 0 || b.value != 0);
  }
  friend Counted is_zero(Counted a) { return ++done.compare, Counted(a.value == 0); }
  friend Counted is_nonzero(Counted a) { return ++done.compare, Counted(a.value != 0); }
  friend Counted abs(Counted a) { return ++done.compare, Counted(std::abs(a.value)); }
  friend Counted negated(Counted a) { return ++done.add, Counted(-a.value); }
  friend double value_of(Counted a) { return a.value; }

  static Counted function(ScalarOp op, double value) {
    ++done.functions[op];
    return Counted(value);
  }
#define EIN_FUNCTION(name, exact, host, adjoint, cuda) \
  friend Counted name(Counted a) { return function(ScalarOp::name, reference::name(a.value)); }
#define EIN_ROUNDING(name, exact, host, adjoint, cuda) \
  friend Counted name(Counted a) { return ++done.compare, Counted(reference::name(a.value)); }
#define EIN_CONVERSION(name, exact, host, adjoint, cuda) \
  friend Counted name(Counted a) { return a; }
#include <ein/detail/scalar_functions.hpp>
  friend Counted atan2(Counted a, Counted b) {
    return function(ScalarOp::atan2, std::atan2(a.value, b.value));
  }
  friend Counted hypot(Counted a, Counted b) {
    return function(ScalarOp::hypot, std::hypot(a.value, b.value));
  }
  friend Counted logaddexp(Counted a, Counted b) {
    return function(ScalarOp::logaddexp, reference::logaddexp(a.value, b.value));
  }
  friend Counted floor_divide(Counted a, Counted b) {
    return ++done.div, Counted(reference::floor_divide(a.value, b.value));
  }
  friend Counted remainder(Counted a, Counted b) {
    return ++done.div, Counted(reference::remainder(a.value, b.value));
  }
  template <class F>
  friend Counted on_bits(Counted a, Counted b, F f) {
    return ++done.compare, Counted(reference::on_bits(a.value, b.value, f));
  }
  friend Counted pow(Counted a, Counted b) {
    return function(ScalarOp::pow, std::pow(a.value, b.value));
  }
  friend Counted normal(Counted a) { return function(ScalarOp::normal, a.value); }
};

/// Runs the graph on Counted numbers and expects the predicted operations.
void expect_counted(const Graph& graph) {
  std::vector<std::vector<Counted>> inputs;
  for (const Op& op : graph.ops) {
    if (op.kind == OpKind::input)
      inputs.emplace_back(static_cast<std::size_t>(numel(op.shape)), Counted(0.5));
  }
  done = {};
  Interpreter<Counted>::run(graph, inputs);
  const Cost predicted = cost(graph);
  EXPECT_EQ(predicted.mul, Count(done.mul)) << to_string(graph);
  EXPECT_EQ(predicted.add, Count(done.add)) << to_string(graph);
  EXPECT_EQ(predicted.div, Count(done.div)) << to_string(graph);
  EXPECT_EQ(predicted.compare, Count(done.compare)) << to_string(graph);
  for (ScalarOp op : transcendental_ops) {
    EXPECT_EQ(predicted.count(op), Count(done.functions[op])) << info(op).name << "\n"
                                                              << to_string(graph);
  }
}

bool same_operations(const Cost& a, const Cost& b) {
  return a.mul == b.mul && a.add == b.add && a.div == b.div && a.compare == b.compare &&
         a.transcendental == b.transcendental && a.model == b.model &&
         a.matmul_only == b.matmul_only;
}

/// The graph's cost after ordering equals that of the nests that execute it.
void expect_nests_cost_the_same(const Graph& graph) {
  const Graph ordered = order_contractions(graph);
  std::vector<InputLayout> layouts;
  for (const Op& op : ordered.ops) {
    if (op.kind == OpKind::input) layouts.push_back({contiguous_strides(op.shape), 0});
  }
  const Program program = lower(ordered, layouts);
  EXPECT_TRUE(same_operations(cost(ordered), cost(program)))
      << to_string(ordered) << to_string(program);
}

constexpr std::array<std::int64_t, 6> sizes{2, 3, 1, 4, 5, 2};
std::string axis_name(int axis) { return std::string(1, static_cast<char>('a' + axis)); }

/// Grows a graph by random calls on values whose dimensions are groups of the axes a ... f.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint32_t seed) : random_(seed) {
    dtype_ = std::array{DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64}[pick(5)];
    for (int i = 0; i < 3; ++i) add_input();
    const int steps = 1 + pick(6);
    for (int i = 0; i < steps; ++i) grow();
    graph.outputs = {static_cast<ValueId>(graph.ops.size()) - 1};
    verify(graph);
  }
  Graph graph;

 private:
  using Dims = std::vector<std::vector<int>>;

  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  std::vector<int> some_axes(std::vector<int> from, std::size_t most) {
    std::shuffle(from.begin(), from.end(), random_);
    from.resize(std::min<std::size_t>(
        static_cast<std::size_t>(pick(static_cast<int>(from.size()) + 1)), most));
    return from;
  }
  /// Axes in random order, some neighbours merged into one dimension.
  Dims grouped(const std::vector<int>& axes) {
    Dims dims;
    for (int axis : axes) {
      if (!dims.empty() && pick(4) == 0) {
        dims.back().push_back(axis);
      } else {
        dims.push_back({axis});
      }
    }
    return dims;
  }
  static std::string text(const Dims& dims) {
    std::string text;
    for (const auto& dim : dims) {
      text += " (";
      for (int axis : dim) text += axis_name(axis) + " ";
      text += ")";
    }
    return text;
  }
  static Shape shape(const Dims& dims) {
    Shape shape;
    for (const auto& dim : dims) {
      std::int64_t size = 1;
      for (int axis : dim) size *= sizes[static_cast<std::size_t>(axis)];
      shape.push_back(size);
    }
    return shape;
  }
  static std::vector<int> axes_of(const Dims& dims) {
    std::vector<int> axes;
    for (const auto& dim : dims) axes.insert(axes.end(), dim.begin(), dim.end());
    return axes;
  }

  void add_input() {
    dims_.push_back(grouped(some_axes({0, 1, 2, 3, 4, 5}, 4)));
    graph.ops.push_back({.kind = OpKind::input, .dtype = dtype_, .shape = shape(dims_.back())});
    values_.push_back(static_cast<ValueId>(graph.ops.size()) - 1);
  }

  /// Appends the graph of a pattern call on existing values.
  void call(Operation op, const std::string& pattern, const std::vector<std::size_t>& operands,
            const Dims& result, Reduction reduction = Reduction::sum) {
    const grammar::Reading reading = grammar::parse_pattern(pattern);
    std::vector<AxisSize> given;
    std::vector<std::string> names(6);
    for (int axis = 0; axis < 6; ++axis) names[static_cast<std::size_t>(axis)] = axis_name(axis);
    for (int axis = 0; axis < 6; ++axis) {
      if (pattern.find(names[static_cast<std::size_t>(axis)]) == std::string::npos) continue;
      given.push_back(
          {names[static_cast<std::size_t>(axis)], sizes[static_cast<std::size_t>(axis)]});
    }
    std::vector<OperandType> types;
    for (std::size_t o : operands) types.push_back({shape(dims_[o]), dtype_});
    const Graph piece = build_graph({op, reading.buffer.pattern(pattern), given, reduction}, types);
    std::vector<ValueId> moved;
    std::size_t next = 0;
    for (const Op& part : piece.ops) {
      if (part.kind == OpKind::input) {
        moved.push_back(values_[operands[next++]]);
        continue;
      }
      graph.ops.push_back(part);
      for (ValueId& input : graph.ops.back().inputs) input = moved[static_cast<std::size_t>(input)];
      moved.push_back(static_cast<ValueId>(graph.ops.size()) - 1);
    }
    values_.push_back(moved[static_cast<std::size_t>(piece.outputs[0])]);
    dims_.push_back(result);
  }

  void grow() {
    const std::size_t x = static_cast<std::size_t>(pick(static_cast<int>(values_.size())));
    switch (pick(4)) {
      case 0: {
        std::vector<std::size_t> operands(static_cast<std::size_t>(1 + pick(6)));
        std::vector<int> all;
        std::string pattern;
        for (std::size_t& o : operands) {
          o = static_cast<std::size_t>(pick(static_cast<int>(values_.size())));
          pattern += (&o == operands.data() ? "" : ",") + text(dims_[o]);
          for (int axis : axes_of(dims_[o])) {
            if (std::find(all.begin(), all.end(), axis) == all.end()) all.push_back(axis);
          }
        }
        const Dims result = grouped(some_axes(all, 4));
        return call(Operation::einsum, pattern + " ->" + text(result), operands, result);
      }
      case 1: {
        const Dims result = grouped(some_axes(axes_of(dims_[x]), 4));
        const auto reduction = static_cast<Reduction>(pick(10));
        if (is_integral(dtype_) && wants_floating(reduction)) return grow();
        return call(Operation::reduce, text(dims_[x]) + " ->" + text(result), {x}, result,
                    reduction);
      }
      case 2: {
        std::vector<int> axes = axes_of(dims_[x]);
        std::shuffle(axes.begin(), axes.end(), random_);
        const Dims result = grouped(axes);
        return call(Operation::rearrange, text(dims_[x]) + " ->" + text(result), {x}, result);
      }
      default:
        return add_map(x);
    }
  }

  void add_map(std::size_t x) {
    const ValueId value = values_[x];
    Op op{.kind = OpKind::map, .dtype = dtype_, .shape = graph.op(value).shape, .inputs = {value}};
    for (std::size_t d = 0; d < op.shape.rank(); ++d) {
      op.axes.push_back({"x" + std::to_string(d), op.shape[d]});
      op.write.push_back({0, {{static_cast<int>(d), 1}}});
    }
    op.reads = {op.write};
    op.compute = is_integral(dtype_) ? DType::i64 : dtype_ == DType::f64 ? DType::f64 : DType::f32;
    Ex e = Ex::input(0);
    const int steps = 1 + pick(4);
    for (int i = 0; i < steps; ++i) {
      const auto any = static_cast<ScalarOp>(pick(static_cast<int>(ScalarOp::where) + 1));
      const bool integral = is_integral(dtype_);
      const bool real_only =
          info(any).cost == CostClass::transcendental || info(any).cost == CostClass::division;
      if (integral && real_only) continue;
      switch (info(any).arity) {
        case 1:
          e = Ex::apply(any, e);
          break;
        case 2:
          e = Ex::apply(any, e, pick(2) ? Ex::input(0) : Ex::integer(2));
          break;
        case 3:
          e = Ex::apply(any, e, Ex::input(0), Ex::integer(1));
          break;
        default:
          break;
      }
    }
    op.expr = e;
    graph.ops.push_back(op);
    values_.push_back(static_cast<ValueId>(graph.ops.size()) - 1);
    dims_.push_back(dims_[x]);
  }

  std::mt19937 random_;
  DType dtype_;
  std::vector<ValueId> values_;
  std::vector<Dims> dims_;
};

TEST(Cost, IsWhatACountingInterpreterCounts) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomGraph random(seed);
    expect_counted(random.graph);
    expect_counted(order_contractions(random.graph));
    expect_nests_cost_the_same(random.graph);
    if (HasFailure()) return;
  }
}

TEST(Cost, PlaceGatherScatterAndScanAreCountedToo) {
  const Access ab{{0, {{0, 1}}}, {0, {{1, 1}}}}, a{{0, {{0, 1}}}}, at_b{{}, {0, {{1, 1}}}};
  const std::vector<Axis> axes{{"a", 5}, {"b", 3}};
  const auto expect_both = [](const std::vector<std::pair<DType, Shape>>& inputs, Op op) {
    Graph graph;
    for (const auto& [dtype, shape] : inputs) {
      op.inputs.push_back(static_cast<ValueId>(graph.ops.size()));
      graph.ops.push_back({.kind = OpKind::input, .dtype = dtype, .shape = shape});
    }
    graph.outputs = {static_cast<ValueId>(graph.ops.size())};
    graph.ops.push_back(std::move(op));
    verify(graph);
    expect_counted(graph);
    expect_nests_cost_the_same(graph);
  };
  expect_both({{DType::f32, {5, 3}}}, {.kind = OpKind::place,
                                       .shape = {7, 3},
                                       .axes = axes,
                                       .reads = {ab},
                                       .write = {{1, {{0, 1}}}, {0, {{1, 1}}}}});
  expect_both(
      {{DType::f32, {7, 3}}, {DType::i64, {5}}},
      {.kind = OpKind::gather, .shape = {5, 3}, .axes = axes, .reads = {at_b, a}, .write = ab});
  for (const Combine combine : {Combine::sum, Combine::prod, Combine::max, Combine::min}) {
    expect_both({{DType::f32, {5, 3}}, {DType::i64, {5}}}, {.kind = OpKind::scatter,
                                                            .shape = {7, 3},
                                                            .axes = axes,
                                                            .reads = {ab, a},
                                                            .write = at_b,
                                                            .combine = combine});
    for (const int axis : {0, 1}) {
      expect_both({{DType::f32, {5, 3}}}, {.kind = OpKind::scan,
                                           .shape = {5, 3},
                                           .axes = axes,
                                           .reads = {ab},
                                           .write = ab,
                                           .combine = combine,
                                           .axis = axis});
    }
  }
}

TEST(Cost, ConventionsOfAMatrixProduct) {
  const Graph graph =
      graph_of(Operation::einsum, runtime("b d, d k -> b k"), {{1024, 256}, {256, 64}});
  const Cost c = cost(graph);
  EXPECT_EQ(c.model, Count(33'554'432));
  EXPECT_EQ(c.matmul_only, Count(33'554'432));
  EXPECT_EQ(c.mul, Count(1024 * 256 * 64));
  EXPECT_EQ(c.add, Count(1024 * 255 * 64));
  EXPECT_EQ(c.strict(), c.mul + c.add);
  EXPECT_EQ(c.bytes_read, Count(4 * (1024 * 256 + 256 * 64)));
  EXPECT_EQ(c.bytes_written, Count(4 * 1024 * 64));
  const CostFormula f = cost_formula(graph);
  EXPECT_EQ(f.model.to_string(), "2·b·d·k");
  EXPECT_EQ(f.add.to_string(), "b·d·k - b·k");
  EXPECT_EQ(f.model.degree("d"), 1);
  EXPECT_EQ(f.model.axes(), (std::vector<std::string>{"b", "d", "k"}));
}

// A nest that multiplies and sums is a matrix product only if the graph has one there.
TEST(Cost, AFusedSumOfProductsIsNoContraction) {
  const Tensor x = randn({8, 8}), y = randn({8, 8});
  const auto expect_same = [&](auto&& f) {
    auto compiled = compile(f);
    compiled(x, y);
    const Cost graph = cost(compiled.graph()), nests = compiled.cost();
    EXPECT_EQ(nests.model, graph.model) << compiled.text();
    EXPECT_EQ(nests.matmul_only, graph.matmul_only) << compiled.text();
    CostScope scope;
    f(x, y);
    EXPECT_EQ(scope.total().matmul_only, graph.matmul_only);
    EXPECT_EQ(scope.total().model, graph.model);
  };
  expect_same([](const Tensor& a, const Tensor& b) { return reduce(a * b, "i j -> i", "sum"); });
  expect_same([](const Tensor& a, const Tensor& b) { return einsum(a, b, "i j, i j -> i"); });
  expect_same([](const Tensor& a, const Tensor& b) { return einsum(a, b, "i j, i k -> i j k"); });
  expect_same([](const Tensor& a, const Tensor& b) {
    return reduce(einsum(a, b, "i j, i j -> i j"), "i j -> ", "sum");
  });
}

TEST(Cost, AReductionInPartsCountsAsOne) {
  // Reductions down columns that group_nests cuts in parts, which another nest joins.
  const Tensor x = randn({128, 195}), w = ones({128});
  auto normed =
      compile([&](const Tensor& a) { return layer_norm(clamp(a, 1.5, 2), w, w, "[a] b"); });
  normed(x);
  EXPECT_EQ(normed.cost().model, cost(normed.graph()).model) << normed.text();
  EXPECT_EQ(normed.cost().add, cost(normed.graph()).add) << normed.text();
  auto any = compile([](const Tensor& a) { return reduce(a * 0 < 1, "a b -> b", "any"); });
  any(x);
  EXPECT_EQ(any.cost().compare, cost(any.graph()).compare) << any.text();
}

TEST(Cost, FormulasEvaluateToTheCounts) {
  const Graph graph = graph_of(Operation::einsum, runtime("b s1 h, b s2 h, s2 k -> b k"),
                               {{2, 3, 4}, {2, 5, 4}, {5, 7}});
  for (const Graph& g : {graph, order_contractions(graph)}) {
    const CostFormula f = cost_formula(g);
    const Cost c = cost(g);
    const std::map<std::string, std::int64_t, std::less<>> at{
        {"b", 2}, {"s1", 3}, {"h", 4}, {"s2", 5}, {"k", 7}};
    EXPECT_EQ(f.mul.evaluate(at), c.mul);
    EXPECT_EQ(f.add.evaluate(at), c.add);
    EXPECT_EQ(f.model.evaluate(at), c.model);
    EXPECT_EQ(f.strict().evaluate(at), c.strict());
    EXPECT_EQ(f.bytes_read.evaluate(at), c.bytes_read);
  }
  EXPECT_THROW(cost_formula(graph).mul.evaluate({{"b", 2}}), Error);
}

TEST(Cost, FormulasOfRandomGraphsEvaluateToTheCounts) {
  test::for_seeds(200, [](unsigned seed) {
    const Graph graph = RandomGraph(seed).graph;
    std::map<std::string, std::int64_t, std::less<>> at;
    for (const Op& op : graph.ops) {
      for (const Axis& axis : op.axes) at[axis.name] = axis.size;
    }
    const CostFormula f = cost_formula(graph);
    const Cost c = cost(graph);
    EXPECT_EQ(f.model.evaluate(at), c.model);
    EXPECT_EQ(f.strict().evaluate(at), c.strict());
    EXPECT_EQ(f.bytes_read.evaluate(at), c.bytes_read);
    EXPECT_EQ(f.bytes_written.evaluate(at), c.bytes_written);
  });
}

// The parts of an axis that is cut have its name.
TEST(Cost, FormulasOfPartsOfAnAxis) {
  using Function = Tensor (*)(const Tensor&);
  const Function rolled = [](const Tensor& x) { return roll(x, "a [b]", 2); };
  const Function padded = [](const Tensor& x) { return pad(x, "a [b]", 2, 3); };
  for (const Function f : {rolled, padded}) {
    auto compiled = compile(f);
    compiled(arange(35.0).view({5, 7}));
    const Graph& graph = compiled.graph();
    EXPECT_EQ(cost_formula(graph).bytes_read.evaluate({{"a", 5}, {"b", 7}}),
              cost(graph).bytes_read);
    EXPECT_EQ(cost_formula(graph).bytes_written.evaluate({{"a", 5}, {"b", 7}}),
              cost(graph).bytes_written);
  }
}

TEST(Cost, CountsBeyondSixtyFourBits) {
  const std::int64_t n = 1'000'000'000;
  const Graph graph = graph_of(Operation::einsum, runtime("i k, k j -> i j"), {{n, n}, {n, n}});
  EXPECT_EQ(cost(graph).model.to_string(), "2000000000000000000000000000");
  Count huge = std::uint64_t{1} << 63;
  EXPECT_THROW(huge * huge * huge, Error);
  EXPECT_THROW(Count(1) - Count(2), Error);
}

TEST(Cost, OrderOfContractionChangesTheCount) {
  const Graph written =
      graph_of(Operation::einsum, runtime("a b, b c, c d -> a d"), {{10, 20}, {20, 30}, {30, 5}});
  EXPECT_EQ(cost(written).model, Count(3 * 10 * 20 * 30 * 5));
  EXPECT_EQ(cost(order_contractions(written)).model, Count(2 * (20 * 30 * 5 + 10 * 20 * 5)));
}

TEST(Polynomial, IsSimplified) {
  const Polynomial a = Polynomial::axis("a"), b = Polynomial::axis("b");
  EXPECT_EQ((a + a).to_string(), "2·a");
  EXPECT_EQ((a - a).to_string(), "0");
  EXPECT_EQ(((a + b) * (a - b)).to_string(), "a^2 - b^2");
  EXPECT_EQ((Polynomial(3) * a * b * a).to_string(), "3·a^2·b");
  EXPECT_EQ((a * b), (b * a));
  EXPECT_EQ((Polynomial(0) - a).to_string(), "-a");
  EXPECT_THROW((Polynomial(INT64_MAX) * Polynomial(2)), Error);
  EXPECT_THROW((b - a).evaluate({{"a", 2}, {"b", 1}}), Error);
}

TEST(CostScope, RecordsWhatRuns) {
  const Tensor x = randn({4, 8}), w = randn({8, 2});
  CostScope outer;
  {
    const CostLabel block("block 0");
    const CostScope inner;
    {
      const CostLabel linear("linear");
      einsum(x, w, "b i, i o -> b o");
    }
    exp(x);
    EXPECT_EQ(inner.total().model, Count(2 * 4 * 8 * 2 + 32));
  }
  rearrange(x, "a b -> b a");
  ASSERT_EQ(outer.entries().size(), 3u);
  EXPECT_EQ(outer.entries()[0].label, "block 0/linear");
  EXPECT_EQ(outer.entries()[0].call, "einsum \"b i, i o -> b o\"");
  EXPECT_EQ(outer.total("block 0/linear").model, Count(2 * 4 * 8 * 2));
  EXPECT_EQ(outer.total().count(ScalarOp::exp), Count(32));
  EXPECT_EQ(outer.entries()[2].cost, Cost());
}

}  // namespace
}  // namespace ein
