#include <cstdio>
#include <cstdlib>

#include <ein/call.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include <ein/grammar/parse.hpp>
#include "eigen.hpp"
#include "harness.hpp"

namespace bench {
namespace {

using ein::einsum, ein::randn, ein::Tensor;

void repeated(Bench& bench) {
  bench.section("Nanoseconds per repeated call on small tensors");
  const std::vector<int> one = {1};
  for (std::int64_t n : {4, 16}) {
    const Tensor a = randn({n, n}), b = randn({n, n}), c = ein::empty({n, n});
    const auto product = [=] { matrix(c, n, n).noalias() = matrix(a, n, n) * matrix(b, n, n); };
    bench.run({.title = "i k, k j -> i j  " + std::to_string(n),
               .peer = "Eigen's bare product",
               .ours = [=] { return einsum(a, b, "i k, k j -> i j"); },
               .beside = product,
               .unit = "ns",
               .target = n == 4 ? at_most_ns(1000) : Target{},
               .expected = [=] { return product(), c; }},
              one);
  }
  const Tensor x = randn({2, 3, 4});
  const auto row = [&](const std::string& title, std::function<Tensor()> call) {
    bench.run({.title = title,
               .peer = "",
               .ours = std::move(call),
               .beside = nullptr,
               .unit = "ns",
               .target = at_most_ns(1000),
               .expected = nullptr},
              one);
  };
  row("rearrange a b c -> c b a  2 3 4 (a view)",
      [=] { return ein::rearrange(x, "a b c -> c b a"); });
  row("reduce a b c -> b  2 3 4", [=] { return ein::reduce(x, "a b c -> b", "sum"); });
  row("x + x  2 3 4", [=] { return x + x; });
}

void first(Bench& bench) {
  bench.section(
      "Nanoseconds per first call: parsing, solving and planning (each call has a new pattern)");
  const std::vector<int> one = {1};
  const Tensor a = randn({4, 4, 4}), b = randn({4, 4, 4});
  auto fresh = [n = 0](const char* pattern) mutable {
    char text[256];
    ++n;
    std::snprintf(text, sizeof text, pattern, n, n, n, n, n, n, n, n, n);
    return std::string(text);
  };
  bench.run({.title = "einsum b s1 h, b s2 h -> b s1 s2",
             .peer = "",
             .ours =
                 [=]() mutable {
                   return einsum(a, b,
                                 ein::runtime(fresh("b%d s%d h%d, b%d t%d h%d -> b%d s%d t%d")));
                 },
             .beside = nullptr,
             .unit = "ns",
             .target = at_most_ns(100000),
             .expected = nullptr},
            one);
  bench.run({.title = "of that, the parser",
             .peer = "",
             .ours =
                 [=]() mutable {
                   const std::string text = fresh("b%d s%d h%d, b%d t%d h%d -> b%d s%d t%d");
                   if (ein::grammar::parse_pattern(text).mistake) std::abort();
                   return a;
                 },
             .beside = nullptr,
             .unit = "ns",
             .target = {},
             .expected = nullptr},
            one);
}

/// A chain of 10,000 matrix products and maps.
ein::Graph long_graph() {
  using namespace ein;
  const Graph product =
      graph_of(Operation::einsum, runtime("b i, i o -> b o"), {{64, 32}, {32, 32}});
  Graph graph;
  graph.ops = {product.ops[0], product.ops[1]};
  for (ValueId x = 0; graph.ops.size() < 10000; x = static_cast<ValueId>(graph.ops.size()) - 1) {
    graph.ops.push_back(product.ops[2]);
    graph.ops.back().inputs = {x, 1};
    Op map{.kind = OpKind::map, .shape = Shape{64, 32}, .inputs = {x + (x == 0 ? 2 : 1)}};
    map.axes = {{"b", 64}, {"o", 32}};
    map.write = {{0, {{0, 1}}}, {0, {{1, 1}}}};
    map.reads = {map.write};
    map.expr = Ex::apply(ScalarOp::tanh, Ex::input(0) * Ex(0.5));
    graph.ops.push_back(map);
  }
  graph.outputs = {static_cast<ValueId>(graph.ops.size()) - 1};
  verify(graph);
  return graph;
}

void costing(Bench& bench) {
  bench.section("Nanoseconds to cost a graph of 10,000 operations");
  const ein::Graph graph = long_graph();
  const Tensor nothing;
  bench.run({.title = "cost(graph)",
             .peer = "",
             .ours =
                 [=] {
                   if (ein::cost(graph).model == ein::Count(0)) std::abort();
                   return nothing;
                 },
             .beside = nullptr,
             .unit = "ns",
             .target = at_most_ns(50e6),
             .expected = nullptr},
            {1});
  bench.run({.title = "cost_formula(graph)",
             .peer = "",
             .ours =
                 [=] {
                   if (ein::cost_formula(graph).model.is_zero()) std::abort();
                   return nothing;
                 },
             .beside = nullptr,
             .unit = "ns",
             .expected = nullptr},
            {1});
}

}  // namespace

void calls(Bench& bench) {
  repeated(bench);
  first(bench);
  costing(bench);
}

}  // namespace bench
