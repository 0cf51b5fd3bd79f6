#include "passes/contraction_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <complex>
#include <ctime>
#include <functional>
#include <iostream>
#include <limits>
#include <random>

#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include "oracle/interpret.hpp"
#include "passes/lower.hpp"
#include "support/seeds.hpp"
namespace ein {
namespace {

using Random = std::mt19937_64;
using Mask = unsigned;

const std::uint64_t seed = 20240612 + test::first_seed();

std::int64_t below(Random& random, std::int64_t n) {
  return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
}

/// A contraction whose operands have one dimension per axis, given by sets of axes.
struct Contraction {
  std::vector<std::int64_t> sizes;
  std::vector<Mask> operands;
  Mask output = 0;

  static Access access(Mask axes) {
    Access access;
    for (int a = 0; axes >> a; ++a) {
      if (axes >> a & 1) access.push_back({0, {{a, 1}}});
    }
    return access;
  }
  Shape shape(Mask axes) const {
    Shape shape;
    for (std::size_t a = 0; axes >> a; ++a) {
      if (axes >> a & 1) shape.push_back(sizes[a]);
    }
    return shape;
  }
  Graph graph(DType dtype = DType::f64) const {
    Graph graph;
    Op op{
        .kind = OpKind::contract, .dtype = dtype, .shape = shape(output), .write = access(output)};
    for (std::size_t a = 0; a < sizes.size(); ++a)
      op.axes.push_back({std::string(1, static_cast<char>('a' + a)), sizes[a]});
    for (Mask axes : operands) {
      op.inputs.push_back(static_cast<ValueId>(graph.ops.size()));
      op.reads.push_back(access(axes));
      graph.ops.push_back({.kind = OpKind::input, .dtype = dtype, .shape = shape(axes)});
    }
    graph.outputs = {static_cast<ValueId>(graph.ops.size())};
    graph.ops.push_back(std::move(op));
    verify(graph);
    return graph;
  }
};

Contraction random_contraction(Random& random, std::size_t operands, int most_axes,
                               std::int64_t most_size) {
  Contraction c;
  const auto axes = static_cast<std::size_t>(1 + below(random, most_axes));
  for (std::size_t a = 0; a < axes; ++a)
    c.sizes.push_back(below(random, 40) == 0 ? 0 : 1 + below(random, most_size));
  c.operands.assign(operands, 0);
  for (std::size_t a = 0; a < axes; ++a) {
    for (std::int64_t uses = 1 + below(random, 3); uses > 0; --uses) {
      c.operands[static_cast<std::size_t>(below(random, static_cast<std::int64_t>(operands)))] |=
          1u << a;
    }
    if (below(random, 3) == 0) c.output |= 1u << a;
  }
  return c;
}

/// The cheapest of all sequences of steps, tried one after another. Counts as ein::cost does: a
/// product of two is 1 per index tuple and a sum 1 more, where there is an axis to sum.
class AllOrders {
 public:
  AllOrders(const Contraction& c, std::int64_t limit) : c_(c), limit_(limit) {}

  /// With steps of at most so many operands. None, if every order makes an intermediate result
  /// beyond the limit.
  std::optional<std::int64_t> cheapest(std::size_t most_at_once) {
    most_at_once_ = most_at_once;
    best_.reset();
    std::vector<Mask> alive = c_.operands;
    std::int64_t cost = 0;
    for (std::size_t i = 0; i < alive.size(); ++i) {
      const Mask kept = alive[i] & wanted(alive, 1u << i);
      if (kept == alive[i] || exceeds(kept)) continue;
      cost += elements(alive[i]);
      alive[i] = kept;
    }
    visit(alive, cost);
    return best_;
  }

 private:
  /// The axes that the result or an operand besides those of `step` has.
  Mask wanted(const std::vector<Mask>& alive, Mask step) const {
    Mask axes = c_.output;
    for (std::size_t k = 0; k < alive.size(); ++k) axes |= step >> k & 1 ? 0 : alive[k];
    return axes;
  }
  std::int64_t elements(Mask axes) const { return numel(c_.shape(axes)); }
  bool exceeds(Mask axes) const { return limit_ > 0 && elements(axes) > limit_; }

  void visit(const std::vector<Mask>& alive, std::int64_t cost) {
    if (best_ && cost >= *best_) return;
    if (alive.size() == 1) {
      best_ = cost;
      return;
    }
    for (Mask step = 1; step < 1u << alive.size(); ++step) {
      const auto count = static_cast<std::size_t>(std::popcount(step));
      if (count < 2 || count > most_at_once_) continue;
      Mask all = 0;
      std::vector<Mask> rest{0};
      for (std::size_t k = 0; k < alive.size(); ++k) {
        if (step >> k & 1) {
          all |= alive[k];
        } else {
          rest.push_back(alive[k]);
        }
      }
      rest[0] = all & wanted(alive, step);
      if (rest.size() > 1 && exceeds(rest[0])) continue;
      const std::size_t per_tuple = count - (rest[0] == all ? 1 : 0);
      visit(rest, cost + elements(all) * static_cast<std::int64_t>(per_tuple));
    }
  }

  const Contraction& c_;
  std::int64_t limit_;
  std::size_t most_at_once_ = 2;
  std::optional<std::int64_t> best_;
};

std::vector<std::vector<double>> random_inputs(const Graph& graph, Random& random) {
  std::vector<std::vector<double>> inputs;
  for (const Op& op : graph.ops) {
    if (op.kind != OpKind::input) continue;
    inputs.emplace_back(static_cast<std::size_t>(numel(op.shape)));
    for (double& x : inputs.back()) x = static_cast<double>(below(random, 5) - 2);
  }
  return inputs;
}

/// Every contraction has two operands, and no buffer beside the result's exceeds the limit.
void expect_ordered(const Graph& graph, std::int64_t limit) {
  verify(graph);
  std::vector<InputLayout> layouts;
  for (const Op& op : graph.ops) {
    if (op.kind == OpKind::contract) {
      EXPECT_EQ(op.inputs.size(), 2u);
    }
    if (op.kind == OpKind::input) layouts.push_back({contiguous_strides(op.shape), 0});
  }
  const Program program = lower(graph, layouts);
  for (std::size_t b = layouts.size(); b < program.buffers.size(); ++b) {
    if (static_cast<int>(b) == program.results[0].buffer || limit == 0) continue;
    EXPECT_LE(program.buffers[b].elements, limit) << to_string(program);
  }
}

/// Whether the contraction sums nothing, so that its result is 0 without a product.
bool sums_nothing(const Graph& graph) {
  const Op& op = graph.ops.back();
  for (std::size_t a = 0; a < op.axes.size(); ++a) {
    if (op.axes[a].size == 0 && !is_kept(op, static_cast<int>(a))) return true;
  }
  return false;
}

TEST(ContractionOrderTest, IsTheCheapestOfAllOrders) {
  std::cout << "seed " << seed << "\n";
  Random random(seed);
  int limited = 0, at_once = 0;
  for (int i = 0; i < static_cast<int>(test::seeds_or(1500)) && !testing::Test::HasFailure(); ++i) {
    const auto operands = static_cast<std::size_t>(2 + below(random, i % 10 == 0 ? 6 : 5));
    const Contraction c = random_contraction(random, operands, 8, 6);
    const std::int64_t limit = below(random, 2) * (1 + below(random, 40));
    const Graph graph = c.graph();
    SCOPED_TRACE("case " + std::to_string(i) + ", limit " + std::to_string(limit) + "\n" +
                 to_string(graph));
    AllOrders orders(c, limit);
    auto cheapest = sums_nothing(graph) ? std::optional<std::int64_t>(0) : orders.cheapest(2);
    limited += limit > 0;
    if (!cheapest) {  // by pairs
      cheapest = orders.cheapest(operands);
      ++at_once;
    }
    const Graph ordered = order_contractions(graph, {limit});
    EXPECT_EQ(cost(ordered).model.approximate(), static_cast<double>(cheapest.value()))
        << to_string(ordered);
    expect_ordered(ordered, limit);
    const auto inputs = random_inputs(graph, random);
    EXPECT_EQ(Interpreter<>::run(ordered, inputs), Interpreter<>::run(graph, inputs))
        << to_string(ordered);
  }
  EXPECT_GT(limited, static_cast<int>(test::at_least(500)));
  EXPECT_GT(at_once, static_cast<int>(test::at_least(50)));
}

TEST(ContractionOrderTest, MatrixChainIsMultipliedFromItsCheapEnd) {
  // Cormen, Leiserson, Rivest, Stein, Introduction to Algorithms, 15.2: 15125 multiplications.
  Contraction c;
  c.sizes = {30, 35, 15, 5, 10, 20, 25};
  for (unsigned i = 0; i < 6; ++i) c.operands.push_back(3u << i);
  c.output = 1u | 1u << 6;
  EXPECT_EQ(cost(order_contractions(c.graph())).model, Count(2 * 15125));
}

TEST(ContractionOrderTest, ManyOperandsAreContractedGreedily) {
  Random random(seed);
  for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
    const auto operands = static_cast<std::size_t>(11 + below(random, 6));
    const Contraction c = random_contraction(random, operands, 12, 2);
    const Graph graph = c.graph();
    SCOPED_TRACE(to_string(graph));
    const Graph ordered = order_contractions(graph);
    expect_ordered(ordered, 0);
    const auto inputs = random_inputs(graph, random);
    EXPECT_EQ(Interpreter<>::run(ordered, inputs), Interpreter<>::run(graph, inputs));
    for (const std::int64_t limit : {1, 4, 16}) {
      try {
        const Graph within = order_contractions(graph, {limit});
        expect_ordered(within, limit);
        EXPECT_EQ(Interpreter<>::run(within, inputs), Interpreter<>::run(graph, inputs));
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::memory);
        EXPECT_GT(operands, 15u) << "all at once keeps any limit: " << error.what();
      }
    }
  }
}

TEST(ContractionOrderTest, GreedyStaysNearTheCheapestOnAChain) {
  // A chain of matrices with one narrow place: from the left, every product is a thin one.
  Contraction c;
  for (int a = 0; a <= 12; ++a) c.sizes.push_back(a == 0 ? 2 : 20);
  for (unsigned i = 0; i < 12; ++i) c.operands.push_back(3u << i);
  c.output = 1u | 1u << 12;
  const double cheapest = 11 * 2 * (2 * 20 * 20);
  const double greedy = cost(order_contractions(c.graph())).model.approximate();
  EXPECT_GE(greedy, cheapest);
  EXPECT_LE(greedy, 10 * cheapest);
}

TEST(ContractionOrderTest, IntermediatesOfNarrowFloatsAreWide) {
  Contraction c;
  c.sizes = {2, 3, 4, 5};
  c.operands = {3, 6, 12};
  c.output = 9;
  for (DType dtype : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    const Graph ordered = order_contractions(c.graph(dtype));
    ASSERT_EQ(ordered.ops.size(), 5u);
    EXPECT_EQ(ordered.ops[3].dtype, DType::f32);
    EXPECT_EQ(ordered.ops[4].dtype, dtype);
  }
}

TEST(ContractionOrderTest, MaxIntermediateOfEinsum) {
  const Tensor a = ones({8, 3}), b = ones({3, 8}), c = ones({8, 8});
  const Tensor operands[] = {a, b, c};
  // a·b has 64 elements, b·c 24, and a·c, which share no axis, 1536. Below 24 all three are
  // multiplied at once.
  for (const std::int64_t limit : {24, 23, 1}) {
    const Tensor within =
        einsum(operands, "i k, k j, j l -> i l", EinsumOptions{.max_intermediate = limit});
    EXPECT_EQ(within.at({0, 0}).item(), 24);
  }
}

TEST(ContractionOrderTest, ComplexOperandsAreMultipliedAtOnce) {
  using C = std::complex<double>;
  const Tensor x = tensor({{C(1, 2), C(-3, 0.5)}, {C(0, 1), C(2, -1)}}, DType::c128);
  const Tensor operands[] = {x, x, x, x};
  const auto pattern = runtime("a b, b c, c d, d a ->");
  const Tensor by_pairs = einsum(operands, pattern);
  const Tensor at_once = einsum(operands, pattern, EinsumOptions{.max_intermediate = 1});
  EXPECT_TRUE(all_close(at_once, by_pairs, 1e-12));
  try {
    const Tensor five[] = {x, x, x, x, x};
    einsum(five, "a b, b c, c d, d e, e a ->", EinsumOptions{.max_intermediate = 1});
    FAIL() << "one nest multiplies four complex operands";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find("within 1 element"), std::string::npos)
        << error.what();
  }
}

/// A chain of `n` matrices of 2 × 2.
std::string chain_of(int n) {
  std::string pattern;
  for (int i = 0; i < n; ++i)
    pattern += (i ? ", a" : "a") + std::to_string(i) + " a" + std::to_string(i + 1);
  return pattern + " -> a0 a" + std::to_string(n);
}

/// Processor time, which other programs do not lengthen.
double seconds_of(const std::function<void()>& call) {
  const std::clock_t begin = std::clock();
  call();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(ContractionOrderTest, AThousandOperandsArePlannedInTime) {
  // Bounds far above what it takes, 0.02 s and 0.1 s, even with assertions, and far below n^4.
  for (const auto& [n, most] : {std::pair{500, 2.0}, {1400, 8.0}}) {
    const std::vector<Tensor> matrices(static_cast<std::size_t>(n), eye(2));
    const std::string pattern = chain_of(n);
    Tensor product;
    const double seconds = seconds_of([&] { product = einsum(matrices, runtime(pattern)); });
    EXPECT_EQ(product.at({0, 0}).item(), 1);
    EXPECT_EQ(product.at({0, 1}).item(), 0);
    EXPECT_LT(seconds, most) << n << " operands";
  }
}

TEST(ContractionOrderTest, AnAxisOfAThousandOperandsIsPlannedInTime) {
  constexpr int n = 1400;
  std::string pattern = "b";
  for (int i = 1; i < n; ++i) pattern += ", b";
  pattern += " -> b";
  const std::vector<Tensor> vectors(n, ones({3}));
  Tensor product;
  const double seconds = seconds_of([&] { product = einsum(vectors, runtime(pattern)); });
  EXPECT_EQ(product.at({2}).item(), 1);
  EXPECT_LT(seconds, 8.0);
}

/// A tensor of any size in one element of memory.
Tensor repeated(const Shape& shape, DType dtype) {
  const Tensor one = ones({}, dtype);
  return Tensor(one.storage(), dtype, shape, Strides(shape.rank(), 0));
}

TEST(ContractionOrderTest, ImpossibleIntermediatesAreErrors) {
  // Every pair shares one axis of 2^20, so any product of two has 2^80 elements.
  const std::int64_t n = std::int64_t{1} << 20;
  const Tensor x = repeated({n, n, n}, DType::u8);
  try {
    einsum(x, x, x, x, "a b c, c d e, e f a, b d f ->");
    FAIL() << "no machine has the memory for this";
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::overflow || error.kind() == ErrorKind::memory)
        << error.what();
  }
}

}  // namespace
}  // namespace ein
