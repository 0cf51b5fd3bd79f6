// Tensors on a mesh whose parts lie on GPUs: the values of the same calls without a mesh on the
// CPU. One process stands for all; mesh_processes_test.cpp runs these tests on processes that were
// launched, by NCCL.
#include <ein/mesh.hpp>

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/optim.hpp>

#include "support/exchange_counts.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::expect_error;
using test::get_values;

bool is_launched() { return std::getenv("EIN_RANK") || std::getenv("OMPI_COMM_WORLD_SIZE"); }

/// Of four processes, or of two.
Mesh mesh_of_all() {
  const char* const size = std::getenv("EIN_SIZE");
  const int model = size && std::atoi(size) == 2 ? 1 : 2;
  return Mesh({{"data", 2}, {"model", model}}, is_launched() ? "" : "loop");
}

/// Whole numbers, so that sums do not depend on their order.
Tensor numbers(const Shape& shape, std::mt19937_64& random, DType dtype = DType::f32) {
  const Tensor x = empty(shape, dtype);
  std::vector<double> values(static_cast<std::size_t>(x.numel()));
  for (double& value : values) value = static_cast<double>(random() % 9) - 4;
  if (dtype == DType::boolean)
    for (double& value : values) value = value > 2;
  test::set_values(x, values);
  return x;
}

Tensor placed(const Tensor& x, const Mesh& mesh, const std::string& pattern) {
  return place(x.to(cuda), mesh, runtime(pattern));
}

/// Whole, on the CPU.
Tensor whole(const Tensor& x) {
  if (!x.is_placed()) return x.to(cpu);
  std::string way = placement(x) + " ->";
  for (std::size_t d = 0; d < x.rank(); ++d) way += " i" + std::to_string(d);
  return reshard(x, runtime(way)).to(cpu);
}
void expect_same(const Tensor& x, const Tensor& wanted) {
  EXPECT_EQ(x.device(), cuda);
  ASSERT_EQ(x.shape(), wanted.shape());
  ASSERT_EQ(x.dtype(), wanted.dtype());
  EXPECT_EQ(get_values(whole(x)), get_values(wanted));
}

TEST(DeviceMesh, EveryKindOfReshard) {
  const Mesh mesh = mesh_of_all();
  std::mt19937_64 random(1);
  const Tensor value = numbers({8, 12}, random);
  const std::pair<const char*, const char*> ways[] = {{"a@data b", "a b"},
                                                      {"a b@data", "a b"},
                                                      {"a@data b", "a b@data"},
                                                      {"a b@data", "a@data b"},
                                                      {"a@data b", "a@data b@model"},
                                                      {"a@data@model b", "a b"},
                                                      {"a@data b@model", "a@model b@data"}};
  for (const auto& [from, to] : ways) {
    SCOPED_TRACE(std::string(from) + " -> " + to);
    const std::string way = std::string(from) + " -> " + to;
    const Tensor moved = reshard(placed(value, mesh, from), runtime(way));
    EXPECT_EQ(placement(moved), placement(placed(value, mesh, to)));
    expect_same(moved, value);
  }
}

TEST(DeviceMesh, ValuesWithGaps) {
  const Mesh mesh = mesh_of_all();
  std::mt19937_64 random(7);
  const Tensor value = numbers({8, 12}, random), turned = rearrange(value, "a b -> b a");
  const Tensor view = rearrange(placed(value, mesh, "a b@data"), "a b -> b a");
  ASSERT_FALSE(view.local().is_contiguous());
  expect_same(reshard(view, "b@data a -> b a"), turned);
  expect_same(reshard(view, "b@data a -> b a@data"), turned);
  // A result that goes where the columns of a state are.
  const Tensor state = rearrange(zeros({8, 12}, cuda), "a b -> b a");
  auto f = compile([&](const Tensor& x) {
    state.copy_from(reshard(x, "b@data a -> b a"));
    return x;
  });
  f(view);
  expect_same(state, turned);
}

TEST(DeviceMesh, SumsAcrossProcesses) {
  const Mesh mesh = mesh_of_all();
  std::mt19937_64 random(2);
  const Tensor x = numbers({4, 6}, random), w = numbers({6, 8}, random);
  const Tensor by_data = placed(x, mesh, "b@data h");
  expect_same(
      einsum(placed(x, mesh, "b h@data"), placed(w, mesh, "h@data c@model"), "b h, h c -> b c"),
      einsum(x, w, "b h, h c -> b c"));
  expect_same(reduce(by_data, "b h -> h", Reduction::max), reduce(x, "b h -> h", Reduction::max));
  expect_same(reduce(by_data, "b h ->", Reduction::mean), reduce(x, "b h ->", Reduction::mean));
  const std::vector<double> weights =
                                get_values(whole(softmax(placed(x, mesh, "b h@data"), "b [h]"))),
                            wanted = get_values(softmax(x, "b [h]"));
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(weights[i], wanted[i], 1e-6);
}

TEST(DeviceMesh, SumsOfEveryType) {
  const Mesh mesh = mesh_of_all();
  std::mt19937_64 random(3);
  for (const DType dtype : {DType::f64, DType::f16, DType::bf16, DType::f8e5m2, DType::i64,
                            DType::i32, DType::i8, DType::u64, DType::u32, DType::u8}) {
    SCOPED_TRACE(std::string(name(dtype)));
    const bool is_unsigned = dtype == DType::u64 || dtype == DType::u32 || dtype == DType::u8;
    const Tensor x = is_unsigned ? ones({4, 3}, dtype) : numbers({4, 3}, random, dtype);
    for (const Reduction by : {Reduction::sum, Reduction::min})
      expect_same(reduce(placed(x, mesh, "a@data b"), "a b -> b", by), reduce(x, "a b -> b", by));
  }
  const Tensor flags = numbers({4, 3}, random, DType::boolean);
  for (const char* by : {"any", "all"}) {
    expect_same(reduce(placed(flags, mesh, "a@data b"), "a b -> b", runtime(by)),
                reduce(flags, "a b -> b", runtime(by)));
  }
  const Tensor z = complex(numbers({4, 3}, random), numbers({4, 3}, random));
  expect_same(einsum(placed(z, mesh, "a@data b"), "a b -> b"), einsum(z, "a b -> b"));
}

TEST(DeviceMesh, TypesThatNcclLacks) {
  const Mesh mesh = mesh_of_all();
  const Tensor x = placed(ones({4, 3}, DType::i16), mesh, "a@data b");
  EXPECT_EQ(get_values(whole(x)), std::vector<double>(12, 1));  // is moved
  const auto largest = [&] { return reduce(x, "a b -> b", Reduction::max); };
  if (is_launched())
    expect_error(largest, ErrorKind::dtype, {"NCCL cannot combine i16", "convert to i32"});
  else
    EXPECT_EQ(get_values(whole(largest())), std::vector<double>(3, 1));
}

TEST(DeviceMesh, Gradients) {
  const Mesh mesh = mesh_of_all();
  std::mt19937_64 random(4);
  const Tensor x = numbers({4, 6}, random), w = numbers({6, 8}, random);
  const auto loss = [](const Tensor& a, const Tensor& b) {
    const Tensor h = einsum(a, b, "b h, h c -> b c");
    return reduce(h * h, "b c ->", Reduction::sum);
  };
  const Tensor a = x.clone().requires_grad(true), b = w.clone().requires_grad(true);
  loss(a, b).backward();
  const Tensor c = placed(x, mesh, "b@data h").detach().requires_grad(true),
               d = placed(w, mesh, "h c@model").detach().requires_grad(true);
  loss(c, d).backward();
  EXPECT_EQ(placement(c.grad()), placement(c));
  EXPECT_EQ(placement(d.grad()), placement(d));
  expect_same(c.grad(), a.grad());
  expect_same(d.grad(), b.grad());
}

TEST(DeviceMesh, NamedOperationsAlongASplitAxis) {
  const Mesh mesh = mesh_of_all();
  std::mt19937_64 random(8);
  const Tensor x = numbers({4, 8}, random), table = numbers({8, 6}, random),
               positions = from_vector<std::int64_t>({7, 0, 3, 5}, {4});
  const Tensor a = x.clone().requires_grad(true), t = table.clone().requires_grad(true);
  const Tensor pa = placed(x, mesh, "b@model v@data").detach().requires_grad(true),
               pt = placed(table, mesh, "v@data d").detach().requires_grad(true),
               pp = placed(positions, mesh, "b@model");
  const auto loss = [](const Tensor& scores, const Tensor& rows, const Tensor& at) {
    const Tensor losses = cross_entropy(layer_norm(scores, "b [v]"), at, "b [v], b -> b");
    return reduce(gather(rows, at, "[v] d, b -> b d") * rearrange(losses, "b -> b 1"), "b d ->",
                  "sum");
  };
  const Tensor wanted = loss(a, t, positions), got = loss(pa, pt, pp);
  EXPECT_NEAR(got.item(), wanted.item(), 1e-4);
  wanted.backward();
  got.backward();
  for (const auto& [plain, on_mesh] : {std::pair(a, pa), std::pair(t, pt)}) {
    EXPECT_EQ(placement(on_mesh.grad()), placement(on_mesh));
    const std::vector<double> slopes = get_values(plain.grad()),
                              found = get_values(whole(on_mesh.grad()));
    for (std::size_t i = 0; i < slopes.size(); ++i) EXPECT_NEAR(found[i], slopes[i], 1e-4) << i;
  }
}

TEST(DeviceMesh, RandomNumbersDoNotDependOnTheMesh) {
  const Mesh mesh = mesh_of_all();
  auto drop = compile([](const Tensor& x) { return dropout(x, 0.5); });
  manual_seed(7);
  const Tensor wanted = drop(ones({4, 8}));
  manual_seed(7);
  expect_same(drop(placed(ones({4, 8}), mesh, "b@data s@model")), wanted);
}

/// What a compiled step of AdamW leaves after a few runs: losses, then the weights.
std::vector<double> after_steps(const Mesh* mesh, bool shards) {
  std::mt19937_64 random(5);
  const auto lying = [&](const Tensor& x, const char* pattern) {
    const Tensor scaled = x * 0.1;
    return mesh ? placed(scaled, *mesh, pattern).detach() : scaled.detach();
  };
  const Tensor x = lying(numbers({8, 6}, random), "b@data i"),
               y = lying(numbers({8, 6}, random), "b@data i"),
               w1 = lying(numbers({6, 16}, random), "i h@model").requires_grad(true),
               w2 = lying(numbers({16, 6}, random), "h@model o").requires_grad(true);
  optim::AdamW optimizer(std::vector<Tensor>{w1, w2}, {.learning_rate = 0.01, .eps = 1e-3});
  if (shards) optimizer.shard(*mesh, "data");
  auto step = compile([&](const Tensor& a, const Tensor& b) {
    optimizer.zero_grad();
    const Tensor hidden = tanh(einsum(a, w1, "b i, i h -> b h"));
    const Tensor loss = mse_loss(einsum(hidden, w2, "b h, h o -> b o"), b);
    loss.backward();
    if (shards) optimizer.shard_gradients();
    optimizer.step();
    return loss;
  });
  std::vector<double> found;
  for (int i = 0; i < 5; ++i) found.push_back(step(x, y).item());
  for (const Tensor& w : {w1, w2}) {
    const std::vector<double> values = get_values(whole(w.detach()));
    found.insert(found.end(), values.begin(), values.end());
  }
  return found;
}

TEST(DeviceMesh, CompiledSteps) {
  const Mesh mesh = mesh_of_all();
  const std::vector<double> alone = after_steps(nullptr, false);
  EXPECT_LT(alone[4], alone[0]);
  for (const bool shards : {false, true}) {
    const std::vector<double> many = after_steps(&mesh, shards);
    ASSERT_EQ(many.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(many[i], alone[i], 1e-5) << i;
  }
}

/// What the stand-in for NCCL was given.
test::Counts nccl_counts() {
  const char* const name = std::getenv("EIN_NCCL");
  void* const library = name ? dlopen(name, RTLD_NOW) : nullptr;
  void* const function = library ? dlsym(library, "fake_nccl_counts") : nullptr;
  if (!function) return {};
  return test::counts_in(reinterpret_cast<const char* (*)()>(function)());
}

TEST(DeviceMesh, BytesArePredictedAndCounted) {
  const Mesh mesh = mesh_of_all();
  if (mesh.size("model") == 1) return;  // over it and data are the processes of data alone
  std::mt19937_64 random(6);
  const Tensor x = placed(numbers({8, 12}, random), mesh, "b@data h"),
               w = placed(numbers({12, 4}, random), mesh, "h c@model");
  auto f = compile([](const Tensor& a, const Tensor& b) {
    const Tensor y = einsum(a, b, "b h, h c -> b c");
    return std::vector{reduce(y, "b c ->", "sum"),
                       reshard(reduce(y, "b c -> c", "sum"), "c@model -> c@model@data"),
                       reshard(y, "b@data c@model -> b@model c@data"),
                       reshard(y, "b@data c@model -> b c@model")};
  });
  f.prepare(x, w);
  const std::vector<Exchange> predicted = f.exchanges();
  const test::Counts before = nccl_counts();
  f(x, w);
  synchronize(cuda);
  EXPECT_EQ(mesh.exchanged(), predicted) << to_string(mesh.exchanged()) << "predicted\n"
                                         << to_string(predicted);
  if (!is_launched() || std::getenv("EIN_TEST_GPU")) return;
  EXPECT_EQ(test::difference(nccl_counts(), before), test::counts_of(predicted, mesh));
}

}  // namespace
}  // namespace ein
