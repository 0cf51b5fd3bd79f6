// Pictures of graphs: well-formed, complete, the same each time, and fast.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/graph.hpp>
#include <ein/optim.hpp>
#include "draw/graph.hpp"
#include "draw/layers.hpp"
#include "support/xml.hpp"

namespace ein {
namespace {

using test::count;
using test::XmlCheck;

/// Every operation, result and assignment once, and an arrow for each value that something reads.
void expect_complete(const Graph& graph, const std::string& svg) {
  EXPECT_EQ(XmlCheck(svg).mistake(), "");
  std::size_t arrows = graph.outputs.size() + graph.assignments.size();
  for (std::size_t id = 0; id < graph.ops.size(); ++id) {
    EXPECT_EQ(count(svg, "<g id=\"v" + std::to_string(id) + "\">"), 1u) << id;
    arrows += std::set<ValueId>(graph.ops[id].inputs.begin(), graph.ops[id].inputs.end()).size();
  }
  EXPECT_EQ(count(svg, "<g id=\"r"), graph.outputs.size());
  EXPECT_EQ(count(svg, "<g id=\"a"), graph.assignments.size());
  EXPECT_EQ(count(svg, "marker-end="), arrows);
}

TEST(Picture, TheCheckerFindsMistakes) {
  EXPECT_EQ(XmlCheck("<a x=\"1\"><b/>t &lt; u</a>\n").mistake(), "");
  for (const char* bad : {"<a>", "<a></b>", "<a x=1/>", "<a x=\"1\" x=\"2\"/>", "<a>&</a>",
                          "<a>1 > 0</a>", "<a/>b<", "<a x=\"<\"/>"})
    EXPECT_NE(XmlCheck(bad).mistake(), "") << bad;
}

TEST(Picture, Attention) {
  auto attention = compile([](const Tensor& q, const Tensor& k, const Tensor& v) {
    const Tensor scores = einsum(q, k, "b h i d, b h j d -> b h i j") * 0.125;
    return einsum(softmax(scores, "b h i [j]"), v, "b h i j, b h j d -> b h i d");
  });
  const Tensor x = randn({2, 2, 8, 16});
  attention(x, x, x);
  const std::string svg = attention.svg();
  expect_complete(attention.graph(), svg);
  EXPECT_EQ(count(svg, ">b h i d, b h j d -&gt; b h i j</text>"), 1u);
  EXPECT_EQ(count(svg, ">f32 (2, 2, 8, 16)</text>"), 4u);  // three arguments and the result
  EXPECT_EQ(count(svg, ">backward</text>"), 0u);
  EXPECT_EQ(svg, attention.svg());
}

TEST(Picture, ATrainingStepTellsWhatIsWhat) {
  const Tensor w = randn({4, 4}).detach().requires_grad(true), scale = ones({});
  optim::Adam optimizer({w}, {});
  auto step = compile([&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor y = checkpoint(
        [&](const Tensor& a) { return where(a > 0, exp(einsum(a, w, "i j, j k -> i k")), 0); }, x);
    const Tensor loss = reduce(y * scale, "i j ->", Reduction::sum);
    loss.backward();
    optimizer.step();
    return loss;
  });
  step.prepare(ones({4, 4}));
  const std::string svg = step.svg();
  expect_complete(step.graph(), svg);
  for (const char* label : {">argument<", ">parameter<", ">optimizer state<", ">constant<",
                            ">computed again<", ">backward<", ">update<"})
    EXPECT_GE(count(svg, label), 1u) << label;
}

TEST(Picture, NamesAreEscaped) {
  Graph graph;
  graph.ops.push_back({.kind = OpKind::input, .dtype = DType::f32, .shape = {2}});
  Op op{.kind = OpKind::reindex, .dtype = DType::f32, .shape = {2}, .inputs = {0}};
  op.axes = {{"<\"&>", 2}};
  op.reads = {{{0, {{0, 1}}}}};
  op.write = op.reads[0];
  graph.ops.push_back(op);
  graph.outputs = {1};
  expect_complete(graph, to_svg(graph));
  expect_complete({}, to_svg({}));
}

TEST(Picture, LongTextsAreShortenedBetweenCharacters) {
  auto f = compile([](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 20; ++i) y = tanh(y * 1.5) + 0.25;
    return y;
  });
  f.prepare(ones({3}));
  const std::string svg = f.svg();
  expect_complete(f.graph(), svg);
  EXPECT_GE(count(svg, "…</text>"), 1u);
}

TEST(Picture, BoxesOfALayerDoNotOverlap) {
  // Three layers, all connected; widths differ.
  std::vector<double> widths;
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (std::size_t n = 0; n < 15; ++n) widths.push_back(20 + 7 * static_cast<double>(n * 5 % 9));
  for (std::size_t a = 0; a < 10; ++a) {
    for (std::size_t b = 5 + a / 5 * 5; b < 10 + a / 5 * 5; b += 1 + a % 2)
      edges.emplace_back(a, b);
  }
  const LayeredLayout layout = layered_layout(widths, edges, 10);
  EXPECT_EQ(layout.layers, 3u);
  for (std::size_t a = 0; a < 15; ++a) {
    EXPECT_GE(layout.x[a] - widths[a] / 2, -1e-9);
    EXPECT_LE(layout.x[a] + widths[a] / 2, layout.width + 1e-9);
    for (std::size_t b = 0; b < a; ++b) {
      if (layout.layer[a] != layout.layer[b]) continue;
      EXPECT_GE(std::abs(layout.x[a] - layout.x[b]), (widths[a] + widths[b]) / 2 + 10 - 1e-9);
    }
  }
  for (const auto& [a, b] : edges) EXPECT_LT(layout.layer[a], layout.layer[b]);
}

TEST(Picture, ThousandsOfOperations) {
  Graph graph;
  graph.ops.push_back({.kind = OpKind::input, .dtype = DType::f32, .shape = {2}});
  for (int i = 1; i < 2000; ++i) {
    Op op{.kind = OpKind::map, .dtype = DType::f32, .shape = {2}, .inputs = {i - 1, i * 7 / 11}};
    op.axes = {{"i", 2}};
    op.write = {{0, {{0, 1}}}};
    op.reads = {op.write, op.write};
    op.expr = Ex::input(0) + Ex::input(1);
    graph.ops.push_back(op);
  }
  graph.outputs = {1999};
  verify(graph);
  expect_complete(graph, to_svg(graph));
}

TEST(Picture, DotNamesEveryOperation) {
  auto f = compile([](const Tensor& x) { return softmax(x * 2, "[i]"); });
  f.prepare(ones({4}));
  const std::string dot = f.dot();
  for (std::size_t id = 0; id < f.graph().ops.size(); ++id)
    EXPECT_EQ(count(dot, "  v" + std::to_string(id) + " ["), 1u);
  EXPECT_EQ(dot.substr(0, 12), "digraph ein ");
}

}  // namespace
}  // namespace ein
