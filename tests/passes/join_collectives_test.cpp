// Small collectives that are joined: which, how many are left, and the same results.
#include "passes/join_collectives.hpp"

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
#include <ein/optim.hpp>

#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::get_values;

Mesh two_by_two() { return Mesh({{"data", 2}, {"model", 2}}, "loop"); }

Tensor numbers(const Shape& shape, DType dtype, std::mt19937_64& random) {
  const Tensor x = empty(shape, dtype);
  std::vector<double> values(static_cast<std::size_t>(x.numel()));
  for (double& value : values) value = static_cast<double>(random() % 5) - 2;
  test::set_values(x, values);
  return x;
}

std::int64_t calls_of(const std::vector<Exchange>& exchanges, Collective kind) {
  std::int64_t calls = 0;
  for (const Exchange& exchange : exchanges)
    calls += exchange.collective == kind ? exchange.calls : 0;
  return calls;
}

TEST(JoinCollectives, SumsThatDoNotWaitForEachOther) {
  const Mesh mesh = two_by_two();
  std::mt19937_64 random(1);
  const Tensor x = place(numbers({4, 6}, DType::f32, random), mesh, "b@data h"),
               y = place(numbers({8, 2, 3}, DType::f32, random), mesh, "b@data s c"),
               z = place(numbers({4, 6}, DType::f64, random), mesh, "b@data h"),
               w = place(numbers({6, 4}, DType::f32, random), mesh, "h@model c");
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
    return std::vector{reduce(a, "b h -> h", "sum"), reduce(b, "b s c -> s c", "sum"),
                       reduce(a, "b h ->", "sum"),  // these three
                       reduce(a, "b h -> h", "max"), reduce(c, "b h -> h", "sum"),
                       reduce(d, "h c -> c", "sum")};  // by maxima, in f64, over model
  };
  auto joined = compile(f);
  joined.prepare(x, y, z, w);
  EXPECT_EQ(calls_of(joined.exchanges(), Collective::all_reduce), 4);
  std::int64_t bytes = 0;
  for (const Exchange& exchange : joined.exchanges()) bytes += exchange.bytes;
  EXPECT_EQ(bytes, 4 * (6 + 6 + 1) + 4 * 6 + 8 * 6 + 4 * 4);
  const std::vector<Tensor> got = joined(x, y, z, w), wanted = f(x, y, z, w);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(got[i].shape(), wanted[i].shape());
    EXPECT_EQ(get_values(got[i]), get_values(wanted[i]));
  }
}

TEST(JoinCollectives, OfOneGraph) {
  // Sums over one mesh axis of `sizes` elements; each that has a number needs the sum before it.
  const auto graph_of = [](const std::vector<std::pair<std::int64_t, bool>>& sizes) {
    Graph graph;
    ValueId last = -1;
    for (const auto& [size, needs_last] : sizes) {
      const ValueId input = static_cast<ValueId>(graph.ops.size());
      graph.ops.push_back({.kind = OpKind::input, .dtype = DType::f32, .shape = {size}});
      Op op{.kind = OpKind::collective, .dtype = DType::f32, .shape = {size}};
      op.axes = {{"a", size}};
      op.write = op.reads.emplace_back(Access{{0, {{0, 1}}}});
      op.inputs = {needs_last ? last : input};
      op.mesh_axes = 1;
      graph.ops.push_back(op);
      last = static_cast<ValueId>(graph.ops.size()) - 1;
      graph.outputs.push_back(last);
    }
    verify(graph);
    return graph;
  };
  const auto sizes_of = [](const Graph& graph) {
    std::vector<std::int64_t> sizes;
    for (const Op& op : graph.ops) {
      if (op.kind == OpKind::collective) sizes.push_back(op.shape[0]);
    }
    return sizes;
  };
  using Sizes = std::vector<std::int64_t>;
  const auto joined = [&](const std::vector<std::pair<std::int64_t, bool>>& sizes,
                          const JoinLimits& limits = {}) {
    return sizes_of(join_collectives(graph_of(sizes), limits));
  };
  EXPECT_EQ(joined({{5, false}, {7, false}, {9, false}}), (Sizes{21}));
  EXPECT_EQ(joined({{5, false}, {5, true}, {9, false}}), (Sizes{14, 5}));
  EXPECT_EQ(joined({{5, false}, {100'000, false}, {9, false}}), (Sizes{100'000, 14}));
  EXPECT_EQ(joined({{5, false}, {7, false}, {9, false}}, {.operand_bytes = 28}), (Sizes{12, 9}));
  EXPECT_EQ(joined({{5, false}, {7, false}, {9, false}}, {.joined_bytes = 60}), (Sizes{12, 9}));
  EXPECT_EQ(joined({{5, false}}), (Sizes{5}));
  EXPECT_EQ(joined({}), Sizes());
}

TEST(JoinCollectives, AnyGraph) {
  const Mesh mesh = two_by_two();
  std::int64_t joined = 0;
  test::for_seeds(100, [&](unsigned seed) {
    std::mt19937_64 random(seed);
    const Tensor x = place(numbers({4, 6}, DType::f64, random), mesh, "b@data h@model");
    const std::uint64_t draws = random();
    const auto f = [&](const Tensor& first) {
      std::mt19937_64 choice(draws);
      std::vector<Tensor> values{first};
      for (int i = 0; i < 12; ++i) {
        const Tensor &a = values[choice() % values.size()], &b = values[choice() % values.size()];
        switch (choice() % 4) {
          case 0:
            values.push_back(einsum(a, reduce(b, "b h -> h", "sum"), "b h, h -> b h") * 0.25);
            break;
          case 1:
            values.push_back(a - einsum(b, reduce(b, "b h -> b", "max"), "b h, b -> b h"));
            break;
          case 2:
            values.push_back(einsum(a, reshard(reduce(b, "b h -> h", "sum"), "h@model -> h"),
                                    runtime("b h, k -> b h")) *
                             0.5);
            break;
          default:
            values.push_back(a + b);
        }
        // Small enough to be exact.
        values.back() = where(abs(values.back()) > 1e4, values.back() * 0.0 + 1.0, values.back());
      }
      return values;
    };
    auto compiled = compile(f);
    const std::vector<Tensor> wanted = f(x);
    const std::vector<Tensor> got = compiled(x);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      for (int process = 0; process < 4; ++process)
        EXPECT_EQ(get_values(got[i].local(process)), get_values(wanted[i].local(process))) << i;
    }
    for (const Op& op : compiled.graph().ops) joined += op.kind == OpKind::concat;
  });
  EXPECT_GE(joined, std::int64_t{test::at_least(30)});
}

TEST(JoinCollectives, OfATrainingStep) {
  // ZeRO 2: gradients by reduce_scatter, new parameters by all_gather, each once.
  const Mesh mesh = two_by_two();
  std::mt19937_64 random(3);
  std::vector<Tensor> weights, plain;
  for (int i = 0; i < 5; ++i) {
    plain.push_back(numbers({4, 4}, DType::f32, random) * 0.1);
    weights.push_back(plain.back().clone());
    for (Tensor* w : {&plain.back(), &weights.back()}) *w = w->detach(), w->requires_grad(true);
  }
  const auto train = [](std::vector<Tensor>& parameters, optim::SGD& optimizer, const Tensor& x,
                        bool shards) {
    Tensor h = x;
    for (const Tensor& w : parameters) h = einsum(h, w, "b i, i j -> b j") + h;
    const Tensor loss = reduce(h * h, "b i ->", "mean");
    optimizer.zero_grad();
    loss.backward();
    if (shards) optimizer.shard_gradients();
    optimizer.step();
    return loss;
  };
  optim::SGD a(weights, {.learning_rate = 0.1}), b(plain, {.learning_rate = 0.1});
  a.shard(mesh, "data");
  auto step = compile([&](const Tensor& x) { return train(weights, a, x, true); });
  const Tensor x = numbers({8, 4}, DType::f32, random);
  const Tensor lies = place(x, mesh, "b@data i");
  step.prepare(lies);
  EXPECT_EQ(calls_of(step.exchanges(), Collective::reduce_scatter), 1);
  EXPECT_EQ(calls_of(step.exchanges(), Collective::all_gather), 1);
  for (int i = 0; i < 3; ++i) {
    const double loss = step(lies).item<double>(),
                 wanted = train(plain, b, x, false).item<double>();
    EXPECT_NEAR(loss, wanted, 1e-6 * wanted);
  }
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const std::vector<double> got = get_values(weights[i]), wanted = get_values(plain[i]);
    for (std::size_t e = 0; e < got.size(); ++e) EXPECT_NEAR(got[e], wanted[e], 1e-6);
  }
}

}  // namespace
}  // namespace ein
