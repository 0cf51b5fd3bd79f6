// Tensors on a mesh: the same results as without one, by any placement. One process stands for all
// of them; mesh_processes_test.cpp runs the same tests on processes that were launched.
#include <ein/mesh.hpp>

#include <atomic>
#include <random>
#include <thread>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/optim.hpp>

#include "support/expect_error.hpp"
#include "support/launched.hpp"
#include "support/placed_tensors.hpp"
#include "support/random_pattern.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"
#include "train/step.hpp"

namespace ein {
namespace {

using namespace literals;

using test::expect_error;
using test::expect_same;
using test::get_values;
using test::is_launched;
using test::mesh_of;
using test::numbers;
using test::two_by_two;
using test::whole;

/// What f makes of a tensor for process 0, 1, ... of those that are here.
template <class F>
void for_each_part(const Mesh& mesh, const F& f) {
  for (int process = 0; process < (is_launched() ? 1 : mesh.size()); ++process)
    f(process, is_launched() ? mesh.rank() : process);
}

TEST(MeshTest, PartsOfATensor) {
  const Mesh mesh = two_by_two();
  EXPECT_EQ(mesh.size(), 4);
  EXPECT_EQ(mesh.size("model"), 2);
  const Tensor x = arange(24.0).view({4, 6});
  const Tensor placed = place(x, mesh, "b@data s@model");
  EXPECT_TRUE(placed.is_placed());
  EXPECT_EQ(placed.shape(), Shape({4, 6}));
  EXPECT_EQ(placement(placed), "i0@data i1@model");
  const std::vector<double> parts[] = {
      {0, 1, 2, 6, 7, 8}, {3, 4, 5, 9, 10, 11}, {12, 13, 14, 18, 19, 20}, {15, 16, 17, 21, 22, 23}};
  for_each_part(
      mesh, [&](int part, int rank) { EXPECT_EQ(get_values(placed.local(part)), parts[rank]); });
  expect_same(placed, x);
}

TEST(MeshTest, EveryWayToReshard) {
  const Mesh mesh = mesh_of({{"x", 2}, {"y", 2}});
  std::mt19937_64 random(1);
  const Tensor value = numbers({12, 8}, random);
  const char* const ways[] = {"a b",     "a@x b",   "a@y b",   "a b@x",   "a b@y",
                              "a@x b@y", "a@y b@x", "a@x@y b", "a@y@x b", "a b@x@y"};
  for (const char* from : ways) {
    for (const char* to : ways) {
      SCOPED_TRACE(std::string(from) + " -> " + to);
      const Tensor placed = place(value, mesh, runtime(from));
      if (!placed.is_placed()) continue;
      const std::string way = std::string(from) + " -> " + to;
      const Tensor moved = reshard(placed, runtime(way));
      const Tensor wanted = place(value, mesh, runtime(to));
      EXPECT_EQ(placement(moved), placement(wanted));
      for_each_part(mesh, [&](int part, int) {
        EXPECT_EQ(get_values(moved.local(part)), get_values(wanted.local(part)));
      });
    }
  }
}

TEST(MeshTest, OneMeshAxisSplitsOneAxisOfACall) {
  const Mesh mesh = mesh_of({{"x", 2}, {"y", 2}});
  const Tensor t = arange(8.0).view({4, 2});
  const Tensor positions = from_vector<std::int64_t>({3, 0, 1, 2}, {4});
  expect_error(
      [&] { gather(place(t, mesh, "v@x d"), place(positions, mesh, "b@x"), "[v] d, b -> b d"); },
      ErrorKind::placement, {"'x' would split two axes", "positions"});
  expect_error([&] { from_diagonal(place(arange(4.0), mesh, "a@x"), "[a]"); }, ErrorKind::placement,
               {"along a diagonal"});
  // Of a diagonal, and of an axis of size 1 before one that is split.
  const Tensor row = place(arange(4.0).view({1, 4}), mesh, "a b@y");
  expect_same(rearrange(row, "a b -> (a b)"), arange(4.0));
  const Tensor one = place(ones({4, 1}), Mesh({{"p", 2}, {"q", 1}}, "loop"), "a b@q");
  EXPECT_EQ(placement(one + one), "i0 i1@q");
}

TEST(MeshTest, ComplexTensors) {
  const Mesh mesh = two_by_two();
  const Tensor z = complex(arange(8.0).view({4, 2}), ones({4, 2}));
  const Tensor placed = place(z, mesh, "b@data d@model");
  EXPECT_EQ(placement(placed), "i0@data i1@model");
  expect_same(placed * placed, z * z);
  expect_same(einsum(placed, placed, "b d, b d -> b"), einsum(z, z, "b d, b d -> b"));
  expect_error(
      [&] {
        view_as_complex(place(ones({4, 2}), mesh, "b d@model"));
      },
      ErrorKind::placement, {"last axis", "whole"});
}

TEST(MeshTest, NarrowFloatsAreRoundedOnce) {
  const Mesh mesh = mesh_of({{"x", 2}, {"y", 2}});
  const Tensor x = from_vector<float>({6e4f, 6e4f, -6e4f, -6e4f}, {4}).to(DType::f16);
  EXPECT_EQ(reduce(place(x, mesh, "a@x"), "a ->", "sum").item(), 0);
  EXPECT_EQ(reduce(place(x, mesh, "a@x@y"), "a ->", "sum").item(), 0);
}

TEST(MeshTest, ThreadsOfOneProgram) {
  const Mesh mesh(std::vector<MeshAxis>{{"x", 2}, {"y", 2}}, "loop");
  const Tensor x = place(ones({4, 6}), mesh, "a@x b");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) wrong += reduce(x, "a b ->", "sum").item() != 24;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(MeshTest, WhatAnEllipsisStandsForStays) {
  const Mesh mesh = two_by_two();
  std::mt19937_64 random(7);
  const Tensor x = numbers({4, 6, 8}, random), placed = place(x, mesh, "b@data s c@model");
  auto f = [](const Tensor& a) {
    return reshard(a + 1, "... c@model -> ... c") * reduce(a, "b s c -> b s 1", "sum");
  };
  EXPECT_EQ(placement(f(placed)), "i0@data i1 i2");
  expect_same(f(placed), (x + 1) * reduce(x, "b s c -> b s 1", "sum"));
  auto compiled = compile(f);
  EXPECT_EQ(placement(compiled(placed)), "i0@data i1 i2");
  expect_same(compiled(placed), (x + 1) * reduce(x, "b s c -> b s 1", "sum"));
}

TEST(MeshTest, SumsAcrossProcesses) {
  const Mesh mesh = two_by_two();
  std::mt19937_64 random(2);
  const Tensor x = numbers({4, 6}, random), w = numbers({6, 8}, random);
  const Tensor by_data = place(x, mesh, "b@data h"), by_model = place(x, mesh, "b h@model");
  const Tensor z = einsum(by_data, w, "b h, h c -> b c");
  EXPECT_EQ(placement(z), "i0@data i1");
  expect_same(z, einsum(x, w, "b h, h c -> b c"));
  const Tensor summed = einsum(by_model, place(w, mesh, "h@model c"), "b h, h c -> b c");
  EXPECT_FALSE(summed.is_placed());
  expect_same(summed, einsum(x, w, "b h, h c -> b c"));
  expect_same(reduce(by_data, "b h -> h", Reduction::max), reduce(x, "b h -> h", Reduction::max));
  expect_same(reduce(by_data, "b h ->", Reduction::mean), reduce(x, "b h ->", Reduction::mean));
  const std::vector<double> weights = get_values(whole(softmax(by_model, "b [h]")));
  const std::vector<double> wanted = get_values(softmax(x, "b [h]"));
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(weights[i], wanted[i], 1e-15);
}

TEST(MeshTest, AxesOfOneProcess) {
  // Nothing is exchanged along them, and what is predicted is counted.
  const Mesh mesh = mesh_of({{"one", 1}, {"all", 4}, {"single", 1}});
  std::mt19937_64 random(8);
  auto f = compile([](const Tensor& a) {
    const Tensor sum = reduce(a, "b h -> h", "sum");
    return std::vector{sum, reshard(sum, "h@single -> h"),
                       reshard(a, "b@one@all h@single -> b@one h@single@all")};
  });
  const Tensor lies = place(numbers({4, 8}, random, DType::f32), mesh, "b@one@all h@single");
  const std::vector<Tensor> got = f(lies);
  const std::vector<Exchange> predicted = f.exchanges();
  for (const Exchange& exchange : predicted)
    EXPECT_EQ(exchange.over, std::vector<std::string>{"all"});
  EXPECT_EQ(predicted.size(), 2u);
  EXPECT_EQ(mesh.exchanged(), predicted) << to_string(mesh.exchanged());
  EXPECT_EQ(placement(got[2]), "i0@one i1@single@all");
  expect_same(got[1], reduce(whole(lies), "b h -> h", "sum"));
}

TEST(MeshTest, ErrorsOfWhatIsOnAnotherMeshOrNone) {
  const Mesh mesh = two_by_two();
  const Tensor x = place(ones({4, 6}), mesh, "b@data h");
  expect_error([&] { gather_over(x, "pod"); }, ErrorKind::value,
               {"the mesh (data=2, model=2) has no axis 'pod'"});
  expect_error(
      [&] {
        x.copy_from(place(ones({4, 4}), mesh, "b@data h"));
      },
      ErrorKind::shape, {"(4, 4)", "(4, 6)"});
  nn::Linear layer(4, 4);
  layer.place(mesh, [](const std::string& name, const Tensor&) {
    return name == "weight" ? "o@model i" : "";
  });
  StateDict state = layer.state_dict();
  const std::vector<double> before = get_values(layer.state_dict().at("bias"));
  state.at("bias") = ones({4});
  state.at("weight") = place(ones({4, 4}), mesh, "o i@model");
  expect_error([&] { layer.load_state_dict(state); }, ErrorKind::placement,
               {"weight \"i0 i1@model\" for \"i0@model i1\""});
  EXPECT_EQ(get_values(layer.state_dict().at("bias")), before);
}

TEST(MeshTest, OperandsThatMeetLieAlike) {
  const Mesh mesh = two_by_two();
  const Tensor x = place(ones({4, 6}), mesh, "b@data h"), y = ones({4, 6});
  EXPECT_TRUE(x.is_placed());
  expect_error([&] { x + y; }, ErrorKind::placement, {"@data", "operand 2", "ein::place"});
  expect_error([&] { x + place(y, mesh, "b h@model"); }, ErrorKind::placement,
               {"ein::reshard(x, ", "bytes"});
  expect_error([&] { sort(x, "[b] h"); }, ErrorKind::placement, {"put in order", "reshard"});
  expect_error([&] { x.item(); }, ErrorKind::shape, {"24"});
  expect_error([&] { x.to_vector<float>(); }, ErrorKind::placement, {"ein::reshard(x, "});
  expect_error(
      [&] {
        einsum(x, place(ones({4, 6}), mesh, "b@data h"), "a c, b c -> a b");
      },
      ErrorKind::placement, {"'data' would split two axes", "a", "b"});
  expect_error(
      [&] {
        place(ones({3, 6}), mesh, "b@data h");
      },
      ErrorKind::divisibility, {"size 3", "2 equal parts", "pad it to 4"});
}

TEST(MeshTest, ErrorsPointAtBothPlaces) {
  const Mesh mesh = two_by_two();
  const auto marked = [](const auto& f) {
    try {
      f();
    } catch (const Error& error) {
      std::vector<std::uint32_t> begins;
      for (const SourceSpan& span : error.spans()) begins.push_back(span.begin);
      return begins;
    }
    return std::vector<std::uint32_t>();
  };
  using Begins = std::vector<std::uint32_t>;
  const Tensor x = place(ones({4, 2, 6}), mesh, "b@data s h"), w = ones({6, 4}),
               v = place(w, mesh, "h@model o");
  EXPECT_EQ(marked([&] { einsum(x, v, "b s h, h o -> b s o"); }), (Begins{4, 7}));
  // Under an ellipsis, and behind one.
  EXPECT_EQ(marked([&] { einsum(x, v, "... h, h o -> ... o"); }), (Begins{4, 7}));
  EXPECT_EQ(marked([&] { einsum(x, ones({4}), "... _ h, b -> b h"); }), (Begins{}));
  EXPECT_EQ(marked([&] { flip(x, "[b] ..."); }), (Begins{1}));
  // What the pattern says of an operand, and how it lies.
  EXPECT_EQ(marked([&] { einsum(x, w, "b s h@model, h o -> b s o"); }), (Begins{0}));
  EXPECT_EQ(marked([&] { einsum(x, w, "b@data s h@model, h@model o -> b@data s o"); }),
            (Begins{9}));
  EXPECT_EQ(marked([&] { place(ones({3, 2}), mesh, "s h@model d"); }), (Begins{}));  // the rank
  EXPECT_EQ(marked([&] { place(ones({2, 3}), mesh, "d h@model"); }), (Begins{2}));
  EXPECT_EQ(marked([&] { reduce(x, "b s h -> b@model", "sum"); }), (Begins{0, 9}));
}

TEST(MeshTest, PatternsAndTypesSayWhereAxesLie) {
  const Mesh mesh = two_by_two();
  const Tensor x = ones({4, 6}), w = ones({6, 8});
  const Tensor placed = place(x, mesh, "b@data h"), columns = place(w, mesh, "h c@model");
  const Tensor y = einsum(placed, columns, "b@data h, h c@model -> b@data c@model");
  EXPECT_EQ(placement(y), "i0@data i1@model");
  EXPECT_EQ(placement(rearrange(columns, "h (g@model c) -> g@model c h", ein::axis("g", 2))),
            "i0@model i1 i2");
  expect_error([&] { einsum(placed, columns, "b@model h, h c -> b c"); }, ErrorKind::placement,
               {"b@data in operand 1", "ein::reshard(x, \"b@data h -> b@model h\")"});
  expect_error([&] { einsum(placed, columns, "b h, h c -> b c@data"); }, ErrorKind::placement, {});
  expect_error([&] { einsum(x, w, "b@data h, h c -> b c"); }, ErrorKind::placement,
               {"no operand is on a mesh", "ein::place"});
  expect_error([&] { einsum(placed, w, "b@rows h, h c -> b c"); }, ErrorKind::placement,
               {"(data=2, model=2) has no axis 'rows'"});
  const Float<"b@data h"> typed = placed;
  EXPECT_EQ(typed.shape(), placed.shape());
  expect_error([&] { const Float<"b h@model"> other = placed; }, ErrorKind::placement,
               {"split @data", "whole"});
  expect_error([&] { const Float<"b@data h"> other = x; }, ErrorKind::placement, {"whole"});
}

TEST(MeshTest, Gradients) {
  const Mesh mesh = two_by_two();
  std::mt19937_64 random(3);
  const Tensor x = numbers({4, 6}, random), w = numbers({6, 8}, random);
  const auto loss = [](const Tensor& a, const Tensor& b) {
    const Tensor h = einsum(a, b, "b h, h c -> b c");
    return reduce(h * h * a.at({every, slice(0, 1)}), "b c ->", Reduction::sum);
  };
  const Tensor a = x.clone().requires_grad(true), b = w.clone().requires_grad(true);
  loss(a, b).backward();
  const Tensor c = place(x, mesh, "b@data h").detach(), d = w.clone().requires_grad(true);
  c.requires_grad(true);
  loss(c, d).backward();
  expect_same(d.grad(), b.grad());
  EXPECT_EQ(placement(c.grad()), placement(c));
  expect_same(c.grad(), a.grad());
}

TEST(MeshTest, ErrorsOfPositionsSpeakOfTheWholeAxis) {
  const Mesh mesh = mesh_of({{"data", 2}, {"model", 2}});
  const Tensor table = place(ones({8, 3}), mesh, "v@model c");
  const auto at = [](std::int64_t position) {
    return from_vector<std::int64_t>({7, position}, {2});
  };
  expect_error([&] { gather(table, at(8), "[v] c, n -> n c").to(cpu); }, ErrorKind::value,
               {"gather: position 8 is outside an axis of size 8"});
  expect_error([&] { gather(table, at(-1), "[v] c, n -> n c").to(cpu); }, ErrorKind::value,
               {"gather: position -1 is outside an axis of size 8"});
  expect_same(gather(table, at(4), "[v] c, n -> n c"), ones({2, 3}));
  expect_error(
      [&] {
        const Tensor target = from_vector<std::int64_t>({9}, {1});
        cross_entropy(place(ones({1, 8}), mesh, "b v@model"), target, "b [v], b");
      },
      ErrorKind::value, {"cross_entropy: target 9 is none of the 8 classes, 0 to 7"});
  expect_error(
      [&] {
        const Tensor values = place(ones({2, 4}), mesh, "n c@model");
        scatter_add(values, at(8), "n c, n -> [v] c", "v"_a = 8);
      },
      ErrorKind::value, {"scatter_add: position 8 is outside an axis of size 8"});
}

TEST(MeshTest, CompiledFunctions) {
  const Mesh mesh = two_by_two();
  std::mt19937_64 random(4);
  const Tensor x = numbers({4, 6}, random), w = numbers({6, 8}, random);
  const Tensor plain = w.clone().requires_grad(true), state = w.clone().requires_grad(true);
  const auto step_of = [](const Tensor& parameter) {
    return [&parameter](const Tensor& batch) {
      const Tensor h = einsum(batch, parameter, "b h, h c -> b c");
      const Tensor loss = reduce(h * h, "b c ->", Reduction::sum);
      loss.backward();
      const NoGrad no_grad;
      parameter.copy_from(parameter - parameter.grad());
      parameter.zero_grad();
      return loss;
    };
  };
  auto one = compile(step_of(plain));
  auto many = compile(step_of(state));
  const Tensor placed = place(x, mesh, "b@data h");
  for (int i = 0; i < 2; ++i) {
    expect_same(many(placed), one(x));
    expect_same(state.detach(), plain.detach());
  }
}

/// Named operations of a value that is split along one axis or another; "model" splits the axis
/// that most of them are about.
TEST(MeshTest, NamedOperations) {
  const Mesh mesh = two_by_two();
  std::mt19937_64 random(5);
  const Tensor x = numbers({4, 6, 8}, random),
               positions = from_vector<std::int64_t>(
                   {0, 7, 3, 5, 1, 2, 4, 6, 7, 0, 1, 5, 2, 2, 3, 4, 0, 6, 5, 3, 1, 7, 6, 4},
                   {4, 6});
  const Tensor table = numbers({8, 6}, random);
  using F = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>;
  const std::pair<const char*, F> calls[] = {
      {"gather", [](auto&, auto& p, auto& t) { return gather(t, p, "[v] d, b s -> b s d"); }},
      {"one_hot", [](auto&, auto& p, auto&) { return one_hot(p, "b s -> b s [8]"); }},
      {"softmax", [](auto& a, auto&, auto&) { return softmax(a, "b s [v]"); }},
      {"layer_norm", [](auto& a, auto&, auto&) { return layer_norm(a, "b s [v]"); }},
      {"cross_entropy",
       [](auto& a, auto& p, auto&) { return cross_entropy(a, p, "b s [v], b s -> b s"); }},
      {"logsumexp", [](auto& a, auto&, auto&) { return reduce(a, "b s v -> b s", "logsumexp"); }},
      {"var", [](auto& a, auto&, auto&) { return reduce(a, "b s v -> b v", "var"); }},
      {"split", [](auto& a, auto&,
                   auto&) { return rearrange(a, "b (h d) v -> b h d v", ein::axis("d", 3)); }},
      {"merge", [](auto& a, auto&, auto&) { return rearrange(a, "b s v -> b (s v)"); }},
      {"slice",
       [](auto& a, auto&, auto&) {
         return a.at({every, slice(1, 4)});
       }},
      {"cumsum", [](auto& a, auto&, auto&) { return cumsum(a, "b [s] v"); }},
      {"sort", [](auto& a, auto&, auto&) { return sort(a, "b [s] v").values; }},
      {"triu", [](auto& a, auto&, auto&) { return triu(a, "b [s v]"); }},
  };
  for (const auto& [name, f] : calls) {
    for (const char* splits :
         {"b@data s v", "b@data s v@model", "b s v@model@data", "b@data@model s v"}) {
      SCOPED_TRACE(std::string(name) + " of " + splits);
      const bool splits_v = std::string_view(splits).find("v@") != std::string::npos;
      const bool splits_b = std::string_view(splits).find("b@") != std::string::npos;
      if (splits_v && (std::string_view(name) == "merge" || std::string_view(name) == "triu"))
        continue;
      const std::string b =
          !splits_b ? "b"
          : splits_v || std::string_view(splits).find("@model") == std::string::npos
              ? "b@data"
              : "b@data@model";
      const std::string v = !splits_v ? "v" : splits_b ? "v@model" : "v@model@data";
      Tensor a = x.clone(), t = table.clone();
      a.requires_grad(true);
      t.requires_grad(true);
      Tensor pa = place(x, mesh, runtime(splits)).detach(),
             pt = place(table, mesh, runtime(v + " d")).detach();
      pa.requires_grad(true);
      pt.requires_grad(true);
      const Tensor pp = place(positions, mesh, runtime(b + " s"));
      const Tensor wanted = f(a, positions, t), got = f(pa, pp, pt);
      const Tensor y = got.is_placed() ? whole(got) : got;
      const std::vector<double> expected = get_values(wanted), values = get_values(y);
      ASSERT_EQ(values.size(), expected.size());
      for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-12);
      if (!wanted.requires_grad()) continue;
      (wanted * wanted).backward(ones(wanted.shape(), wanted.dtype()));
      (got * got).backward(full_like(got, 1, got.dtype()));
      for (const auto& [plain, placed] : {std::pair(a, pa), std::pair(t, pt)}) {
        ASSERT_EQ(plain.has_grad(), placed.has_grad());
        if (!plain.has_grad()) continue;
        EXPECT_EQ(placement(placed.grad()), placement(placed));
        const Tensor g = placed.grad();
        const std::vector<double> slopes = get_values(plain.grad()),
                                  found = get_values(g.is_placed() ? whole(g) : g);
        for (std::size_t i = 0; i < slopes.size(); ++i) EXPECT_NEAR(found[i], slopes[i], 1e-10);
      }
    }
  }
}

TEST(MeshTest, RandomNumbersDoNotDependOnTheMesh) {
  const Mesh mesh = two_by_two();
  const Tensor x = ones({4, 8, 3});
  auto f = compile([](const Tensor& a) {
    return std::vector{dropout(a, 0.5), a + randn(a.shape())};
  });
  manual_seed(7);
  const std::vector<Tensor> wanted = f(x);
  for (const std::string lies :
       {"b@data s@model c", "b s@model@data c", "b@model s c", "b s@data c"}) {
    manual_seed(7);
    const std::vector<Tensor> got = f(place(x, mesh, runtime(lies)));
    expect_same(got[0], wanted[0]);
    expect_same(got[1], wanted[1]);
    // Nobody draws more than his part.
    for (const Op& op : f.graph().ops) EXPECT_LT(numel(op.shape), x.numel());
  }
}

TEST(MeshTest, BytesArePredictedAndCounted) {
  const Mesh mesh = two_by_two();
  std::mt19937_64 random(6);
  const Tensor x = place(numbers({8, 12}, random, DType::f32), mesh, "b@data h");
  const Tensor w = place(numbers({12, 4}, random, DType::f32), mesh, "h c@model");
  auto f = compile([](const Tensor& a, const Tensor& b) {
    const Tensor y = einsum(a, b, "b h, h c -> b c");
    const Tensor all = reduce(y, "b c ->", "sum");
    const Tensor part = reshard(reduce(y, "b c -> c", "sum"), "c@model -> c@model@data");
    const Tensor other = reshard(y, "b@data c@model -> b@model c@data");
    return std::vector{all, part, other, reshard(y, "b@data c@model -> b c@model")};
  });
  f.prepare(x, w);
  const std::vector<Exchange> predicted = f.exchanges();
  // 4 × 2 numbers of y are here; so are 2 of the sum over b, which becomes a reduce_scatter.
  const auto bytes_of = [&](Collective kind) {
    std::int64_t bytes = 0;
    for (const Exchange& exchange : predicted)
      bytes += exchange.collective == kind ? exchange.bytes : 0;
    return bytes;
  };
  EXPECT_EQ(bytes_of(Collective::all_reduce), 4);
  EXPECT_EQ(bytes_of(Collective::reduce_scatter), 8);
  EXPECT_GE(bytes_of(Collective::all_gather), 32);
  // Sent in a ring, an estimate: twice 3/4 of a number by four, half of all by two.
  for (const Exchange& exchange : predicted) {
    const std::map<Collective, double> sent{{Collective::all_reduce, 6},
                                            {Collective::reduce_scatter, 4},
                                            {Collective::all_gather, 32},
                                            {Collective::all_to_all, 32}};
    EXPECT_EQ(exchange.sent_by_ring(), sent.at(exchange.collective));
  }
  EXPECT_EQ(to_string(exchange_formulas(f.graph(), mesh.axes())),
            "reduce_scatter over data: 1 call, 4·c/model bytes\n"
            "all_gather over data: 1 call, 4·b/data·c/model bytes\n"
            "all_to_all over model: 1 call, 4·b·c/model bytes\n"
            "all_reduce over data model: 1 call, 4 bytes\n");
  const test::MpiCounts mpi;
  f(x, w);
  EXPECT_EQ(mesh.exchanged(), predicted) << to_string(mesh.exchanged()) << "predicted\n"
                                         << to_string(predicted);
  mpi.expect_given(predicted, mesh);
}

/// Losses of a small network in f64, by AdamW. `batch`, `up` and `down` say how the batch and the
/// weights lie; empty: whole.
std::vector<double> losses_in_f64(const Mesh* mesh, const char* batch, const char* up,
                                  const char* down, int zero) {
  std::mt19937_64 random(11);
  const auto normal = [&](const Shape& shape) {
    const Tensor x = empty(shape, DType::f64);
    std::normal_distribution<double> of;
    std::vector<double> values(static_cast<std::size_t>(x.numel()));
    for (double& value : values) value = of(random);
    test::set_values(x, values);
    return x;
  };
  const auto lying = [&](const Tensor& x, const char* pattern) {
    return mesh && *pattern ? place(x, *mesh, runtime(pattern)) : x;
  };
  const Tensor x = lying(normal({8, 6}), batch), y = lying(normal({8, 6}), batch);
  const Tensor w1 = lying(normal({6, 16}) * 0.3, up), w2 = lying(normal({16, 6}) * 0.3, down);
  w1.requires_grad(true);
  w2.requires_grad(true);
  optim::AdamW optimizer(std::vector<Tensor>{w1, w2}, {.learning_rate = 0.01});
  if (zero > 0) optimizer.shard(*mesh, "data");
  auto step = compile([&](const Tensor& a, const Tensor& b) {
    optimizer.zero_grad();
    const Tensor hidden = tanh(einsum(a, w1, "b i, i h -> b h"));
    const Tensor loss = mse_loss(einsum(hidden, w2, "b h, h o -> b o"), b);
    loss.backward();
    if (zero > 1) optimizer.shard_gradients();
    optimizer.step();
    return loss;
  });
  std::vector<double> losses;
  for (int i = 0; i < 200; ++i) losses.push_back(step(x, y).item());
  return losses;
}

TEST(MeshTest, TwoHundredStepsInF64) {
  const Mesh mesh = two_by_two();
  const std::vector<double> alone = losses_in_f64(nullptr, "", "", "", 0);
  EXPECT_LT(alone.back(), 0.5 * alone.front());
  const std::tuple<const char*, const char*, const char*, int> ways[] = {
      {"b@data i", "", "", 0},
      {"", "i h@model", "h@model o", 0},
      {"b@data i", "i h@model", "h@model o", 0},
      {"b@data i", "i h@model", "h@model o", 1},
      {"b@data i", "", "", 2},
      {"b@data i", "i h@model", "h@model o", 2}};
  for (const auto& [batch, up, down, zero] : ways) {
    const std::vector<double> losses = losses_in_f64(&mesh, batch, up, down, zero);
    for (std::size_t i = 0; i < alone.size(); ++i)
      ASSERT_NEAR(losses[i], alone[i], 1e-10 * alone[i]) << batch << up << zero << " step " << i;
  }
}

/// The step of `ein train` under each stage of ZeRO, on processes along "data": what it allocates
/// is what its memory plan says, and state that is split takes its part.
TEST(MeshTest, MemoryOfATrainingStepIsPredicted) {
  const int processes = is_launched() ? 4 : 1;  // one that stands for several has their memory
  std::size_t whole_state = 0;
  for (int zero = 0; zero <= 3; ++zero) {
    SCOPED_TRACE("zero " + std::to_string(zero));
    TrainOptions options;
    options.block_size = 8;
    options.batch_size = 4;
    options.n_layer = options.n_head = 2;
    options.n_embd = 16;
    options.mesh = {{"data", processes}};
    options.zero = zero;
    training::Step made(nn::decoder_config(training::config_of(options, 12)), options);
    auto step = compile([&](const Tensor& x, const Tensor& y) { return made(x, y); });
    const Tensor tokens = zeros({4, 8}, DType::i64);
    step(tokens, tokens);
    std::size_t state = 0;
    for (const Tensor& p : made.model.parameters()) state += p.local().nbytes();
    for (const auto& [name, tensor] : made.optimizer.state_dict()) state += tensor.local().nbytes();
    EXPECT_EQ(step.memory().state, state);
    release_memory();
    const std::size_t before = memory_allocated();
    reset_max_memory_allocated();
    step(tokens, tokens);
    const MemoryPlan& memory = step.memory();
    EXPECT_EQ(max_memory_allocated() - before, memory.results + memory.arena + memory.workspace);
    // A part of a vector that the processes do not divide is whole everywhere; here there is none.
    if (zero == 0) whole_state = state;
    const std::size_t numbers = 2 * sizeof(double);  // the step and the learning rate
    const std::size_t parameters = (whole_state - numbers) / 3;
    const auto n = static_cast<std::size_t>(processes);
    if (zero == 1 || zero == 2) {
      EXPECT_EQ(state, parameters + 2 * parameters / n + numbers);
    }
    if (zero == 3) {
      EXPECT_EQ(state, 3 * parameters / n + numbers);
    }
  }
}

/// A call of random operands and axes: the same on a mesh, wherever they lie.
struct RandomCall {
  std::vector<std::string> axes;  // by name
  std::vector<std::int64_t> sizes;
  std::vector<std::vector<std::size_t>> operands;
  std::vector<std::size_t> result;

  explicit RandomCall(std::mt19937_64& random) {
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const std::size_t count = 2 + below(4);
    for (std::size_t a = 0; a < count; ++a) {
      axes.push_back(std::string(1, static_cast<char>('a' + a)));
      sizes.push_back(static_cast<std::int64_t>(std::array{1, 2, 4, 6, 12}[below(5)]));
    }
    std::vector<std::size_t> all(count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    for (std::size_t o = 0; o < 1 + below(3); ++o) {
      std::shuffle(all.begin(), all.end(), random);
      operands.emplace_back(all.begin(),
                            all.begin() + static_cast<std::ptrdiff_t>(1 + below(count)));
    }
    std::shuffle(all.begin(), all.end(), random);
    for (const std::size_t a : all) {
      const bool is_there = std::any_of(operands.begin(), operands.end(), [&](const auto& o) {
        return std::find(o.begin(), o.end(), a) != o.end();
      });
      if (is_there && below(3) > 0) result.push_back(a);
    }
  }
  std::string side(const std::vector<std::size_t>& of,
                   const std::vector<std::string>& splits) const {
    std::string text;
    for (const std::size_t a : of) text += (text.empty() ? "" : " ") + axes[a] + splits[a];
    return text;
  }
  Tensor einsum_of(const std::vector<Tensor>& x) const {
    const std::string text = pattern();
    if (x.size() == 1) return einsum(x[0], runtime(text));
    if (x.size() == 2) return einsum(x[0], x[1], runtime(text));
    return einsum(x[0], x[1], x[2], runtime(text));
  }
  std::string pattern() const {
    const std::vector<std::string> none(axes.size());
    std::string text;
    for (const auto& operand : operands) text += (text.empty() ? "" : ", ") + side(operand, none);
    return text + " -> " + side(result, none);
  }
};

TEST(MeshTest, AnyEinsumWhereverItsAxesLie) {
  const Mesh mesh = mesh_of({{"x", 2}, {"y", 2}});
  test::for_seeds(300, [&](unsigned seed) {
    std::mt19937_64 random(seed);
    const RandomCall call(random);
    // Each mesh axis splits one axis, if it divides it.
    std::vector<std::string> splits(call.axes.size());
    std::vector<std::int64_t> rest = call.sizes;
    for (const char* mesh_axis : {"@x", "@y"}) {
      const std::size_t a = random() % (call.axes.size() + 1);
      if (a == call.axes.size() || rest[a] % 2 != 0) continue;
      splits[a] += mesh_axis;
      rest[a] /= 2;
    }
    std::vector<Tensor> plain, placed;
    for (const auto& operand : call.operands) {
      Shape shape;
      for (const std::size_t a : operand) shape.push_back(call.sizes[a]);
      plain.push_back(numbers(shape, random));
      placed.push_back(place(plain.back(), mesh, runtime(call.side(operand, splits))));
    }
    SCOPED_TRACE(call.pattern() + " with " + call.side(call.result, splits));
    const Tensor wanted = call.einsum_of(plain);
    expect_same(call.einsum_of(placed), wanted);
    if (seed < 100 && placed.size() == 2) {  // as formulas, what is predicted in numbers
      auto f = compile([&](const Tensor& x, const Tensor& y) { return call.einsum_of({x, y}); });
      f.prepare(placed[0], placed[1]);
      std::map<std::string, std::int64_t, std::less<>> sizes;
      for (std::size_t a = 0; a < call.axes.size(); ++a) {
        std::string part = splits[a];
        std::replace(part.begin(), part.end(), '@', '/');
        sizes[call.axes[a]] = call.sizes[a];
        sizes[call.axes[a] + part] = rest[a];
      }
      const std::vector<ExchangeFormula> formulas = exchange_formulas(f.graph(), mesh.axes());
      ASSERT_EQ(formulas.size(), f.exchanges().size());
      for (std::size_t i = 0; i < formulas.size(); ++i)
        EXPECT_EQ(formulas[i].bytes.evaluate(sizes), Count(f.exchanges()[i].bytes));
    }
    // And its gradients, which lie as the operands do.
    for (std::size_t o = 0; o < plain.size(); ++o) {
      plain[o] = plain[o].detach();
      placed[o] = placed[o].detach();
      plain[o].requires_grad(true);
      placed[o].requires_grad(true);
    }
    const Tensor a = call.einsum_of(plain), b = call.einsum_of(placed);
    (a * a).backward(ones(a.shape(), DType::f64));
    (b * b).backward(full_like(b, 1, DType::f64));
    for (std::size_t o = 0; o < plain.size(); ++o) {
      EXPECT_EQ(placement(placed[o].grad()), placement(placed[o]));
      expect_same(placed[o].grad(), plain[o].grad());
    }
  });
}

}  // namespace
}  // namespace ein
