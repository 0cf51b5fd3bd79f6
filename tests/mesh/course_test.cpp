// What CS336's second assignment says of several processes: its fixtures, and the table of what
// each way of splitting a feed-forward layer sends.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
#include <ein/nn.hpp>
#include <ein/npy.hpp>
#include <ein/optim.hpp>

#include "support/placed_tensors.hpp"
#include "support/shared_data.hpp"

namespace {

using ein::Tensor;
using ein::test::get_values;
using ein::test::whole;
namespace nn = ein::nn;
namespace optim = ein::optim;

ein::Mesh two() { return ein::test::mesh_of({{"data", 2}}); }

/// 10-10-50-5, two ReLU, a frozen bias in the middle and a frozen parameter that nothing uses.
struct ToyNet : nn::Layer {
  nn::Linear fc1{10, 10, false}, fc2{10, 50, true}, fc3{50, 5, false};
  Tensor unused = ein::ones({2, 2});
  EIN_MODULES(fc1, fc2, fc3, unused);
  ToyNet() {
    fc2.bias->requires_grad(false);
    unused.requires_grad(false);
  }
  Tensor forward(const Tensor& x) const override { return fc3(ein::relu(fc2(ein::relu(fc1(x))))); }
};

/// Five layers without biases, of which the second and the fourth are one.
struct TiedNet : nn::Layer {
  nn::Linear fc1{10, 10, false}, fc2{10, 50, false}, fc3{50, 10, false}, fc5{50, 5, false};
  EIN_MODULES(fc1, fc2, fc3, fc5);
  Tensor forward(const Tensor& x) const override {
    return fc5(fc2(ein::relu(fc3(ein::relu(fc2(ein::relu(fc1(x))))))));
  }
};

/// Five steps of SGD on the course's rows, permuted after each; `mesh` splits them.
template <class Net>
std::vector<std::vector<double>> trained_on_fixture(const ein::Mesh* mesh, bool compiled) {
  Tensor
      x = ein::load_npy(ein::test::shared_data("cs336/a2/ddp_test_data.npy")).to(ein::DType::f32),
      y = ein::load_npy(ein::test::shared_data("cs336/a2/ddp_test_labels.npy")).to(ein::DType::f32);
  ein::manual_seed(3);
  const Net net;
  std::vector<Tensor> trainable;
  for (const Tensor& p : net.parameters())
    if (p.requires_grad()) trainable.push_back(p);
  optim::SGD optimizer(trainable, {.learning_rate = 0.1});
  const auto plain = [&](const Tensor& rows, const Tensor& wanted) {
    optimizer.zero_grad();
    const Tensor loss = ein::mse_loss(net(rows), wanted);
    loss.backward();
    optimizer.step();
    return loss;
  };
  auto program = ein::compile(plain);
  std::mt19937_64 random(42);
  for (int step = 0; step < 5; ++step) {
    const auto lying = [&](const Tensor& t) { return mesh ? ein::place(t, *mesh, "b@data i") : t; };
    if (compiled)
      program(lying(x), lying(y));
    else
      plain(lying(x), lying(y));
    std::vector<std::int64_t> order(20);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    const Tensor places = ein::from_vector(order);
    x = gather(x, places, "[b] i, n -> n i");
    y = gather(y, places, "[b] i, n -> n i");
  }
  std::vector<std::vector<double>> values;
  for (const Tensor& p : net.parameters()) values.push_back(p.detach().to_vector<double>());
  return values;
}

template <class Net>
void expect_as_one_process() {
  const auto wanted = trained_on_fixture<Net>(nullptr, false);
  const ein::Mesh mesh = two();
  for (const bool compiled : {false, true}) {
    const auto got = trained_on_fixture<Net>(&mesh, compiled);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      for (std::size_t k = 0; k < got[i].size(); ++k)
        ASSERT_NEAR(got[i][k], wanted[i][k], 1e-6) << i << ' ' << k << ' ' << compiled;
  }
}

TEST(CourseParallel, DataParallelIsOneProcessOnAllRows) {
  SKIP_WITHOUT_SHARED_DATA("cs336/a2/ddp_test_data.npy");
  expect_as_one_process<ToyNet>();
  expect_as_one_process<TiedNet>();
}

TEST(CourseParallel, AShardedOptimizerGivesTheSameWeights) {
  const auto trained = [](const ein::Mesh* mesh) {
    ein::manual_seed(3);
    const ToyNet net;
    std::vector<Tensor> trainable;
    for (const Tensor& p : net.parameters())
      if (p.requires_grad()) trainable.push_back(p);
    optim::AdamW optimizer(trainable, {.learning_rate = 0.1, .weight_decay = 0.1});
    if (mesh) optimizer.shard(*mesh, "data");
    for (int step = 0; step < 10; ++step) {
      const Tensor x = ein::rand({32, 10}), y = ein::rand({32, 5});
      optimizer.zero_grad();
      ein::mse_loss(net(x), y).backward();
      optimizer.step();
    }
    std::vector<std::vector<double>> values;
    for (const Tensor& p : net.parameters())
      values.push_back(get_values(p.is_placed() ? whole(p.detach()) : p.detach()));
    return values;
  };
  const ein::Mesh mesh = two();
  EXPECT_EQ(trained(&mesh), trained(nullptr));
}

struct FsdpNet : nn::Layer {
  nn::Embedding table{100, 64};
  nn::RMSNorm norm1{64};
  nn::Linear up{64, 128, false};
  nn::RMSNorm norm2{128};
  nn::Linear down{128, 64, false}, head{64, 100, false};
  EIN_MODULES(table, norm1, up, norm2, down, head);
  Tensor forward(const Tensor& tokens) const override {
    return head(down(norm2(ein::relu(up(norm1(table(tokens)))))));
  }
};

/// Three steps of SGD on 20 rows of 8 tokens, the loss that of the last position.
std::vector<std::vector<double>> fully_sharded(const ein::Mesh& mesh, bool sharded,
                                               std::optional<ein::DType> dtype = {}) {
  ein::manual_seed(7);
  FsdpNet net;
  if (sharded) net.shard(mesh, "data");
  optim::SGD optimizer(net.parameters(), {.learning_rate = 0.01});
  const auto tokens = [&](std::int64_t first, std::int64_t length) {
    return (ein::arange(20 * length) * 7 + first).view({20, length});
  };
  for (int step = 0; step < 3; ++step) {
    const Tensor x = ein::place(ein::remainder(tokens(step, 8), 100), mesh, "b@data s"),
                 y = ein::place(ein::remainder(tokens(3 * step, 1), 100), mesh, "b@data s");
    optimizer.zero_grad();
    Tensor loss;
    {
      std::optional<ein::Autocast> scope;
      if (dtype) scope.emplace(*dtype);
      const Tensor last = net(x).at({ein::every, ein::slice(7, 8)});
      loss = ein::cross_entropy(last, y, "b s [v], b s");
    }
    loss.backward();
    for (const auto& [name, p] : net.named_parameters()) {
      EXPECT_EQ(p.grad().shape(), p.shape()) << name;
      EXPECT_EQ(p.grad().dtype(), ein::DType::f32) << name;
      EXPECT_EQ(ein::placement(p.grad()), ein::placement(p)) << name;
    }
    optimizer.step();
  }
  std::vector<std::vector<double>> values;
  for (const Tensor& p : net.parameters())
    values.push_back(get_values(p.is_placed() ? whole(p.detach()) : p.detach()));
  return values;
}

TEST(CourseParallel, FullyShardedIsTheSameToTheBit) {
  const ein::Mesh mesh = two();
  const auto wanted = fully_sharded(mesh, false);
  EXPECT_EQ(fully_sharded(mesh, true), wanted);
  const auto narrow = fully_sharded(mesh, true, ein::DType::f16),
             wanted_narrow = fully_sharded(mesh, false, ein::DType::f16);
  for (std::size_t i = 0; i < narrow.size(); ++i)
    for (std::size_t k = 0; k < narrow[i].size(); ++k)
      ASSERT_NEAR(narrow[i][k], wanted_narrow[i][k], 1e-4);
}

/// Of one of `n` devices: products, and numbers that a ring sends.
struct Sent {
  ein::Count flops{};
  double numbers = 0;
};

/// A gated feed-forward layer of three matrices, gate and up side by side; `x`, `up` and `down` say
/// how (b d), (n d f) and (f d) lie. Forward alone, or both passes.
Sent counted(const ein::Mesh& mesh, const char* x, const char* up, const char* down,
             bool backward) {
  const auto made = [&](const ein::Shape& shape, const char* pattern) {
    return ein::place(ein::ones(shape), mesh, ein::runtime(pattern)).requires_grad(backward);
  };
  const Tensor rows = made({64, 32}, x), w = made({2, 32, 128}, up), v = made({128, 32}, down);
  const auto whole = [](const Tensor& t, const char* pattern) {
    const bool is_sharded = std::string_view(pattern).find("d@data") != std::string_view::npos;
    return is_sharded ? ein::gather_over(t, "data") : t;
  };
  auto program = ein::compile([&] {
    const Tensor both = einsum(rows, whole(w, up), "b d, n d f -> n b f");
    const Tensor y = einsum(ein::silu(both[0]) * both[1], whole(v, down), "b f, f d -> b d");
    std::vector<Tensor> results{y};
    if (!backward) return results;
    const std::vector inputs{rows, w, v};
    for (const Tensor& g : ein::gradients(y, ein::full_like(y, 1.0, y.dtype()), inputs))
      results.push_back(g);
    return results;
  });
  program.prepare();
  Sent sent{.flops = program.cost().matmul_only};
  for (const ein::Exchange& e : program.exchanges()) sent.numbers += e.sent_by_ring() / 4;
  return sent;
}

// The handout counts bytes of 16-bit numbers: 12 DF (N - 1) / N are 6 DF numbers, and so on.
TEST(CourseParallel, WhatAFeedForwardLayerSends) {
  const double bd = 64.0 * 32, df = 32.0 * 128;
  for (const int n : {2, 4}) {
    const ein::Mesh mesh({{"data", n}}, "loop");
    struct Row {
      const char *x, *up, *down;
      double forward, backward;
    };
    for (const Row& row : {Row{"b@data d", "n d f", "f d", 0, 6 * df},                 // DP
                           Row{"b@data d", "n d@data f", "f d@data", 3 * df, 6 * df},  // FSDP
                           Row{"b d", "n d f@data", "f@data d", 2 * bd, 2 * bd}}) {    // TP
      SCOPED_TRACE(row.up + std::string(" over ") + std::to_string(n));
      const Sent forward = counted(mesh, row.x, row.up, row.down, false),
                 all = counted(mesh, row.x, row.up, row.down, true);
      const double part = (n - 1.0) / n;
      EXPECT_EQ(forward.flops * ein::Count(n), ein::Count(6 * 64 * 32 * 128));
      EXPECT_EQ((all.flops - forward.flops) * ein::Count(n), ein::Count(12 * 64 * 32 * 128));
      EXPECT_DOUBLE_EQ(forward.numbers, row.forward * part);
      EXPECT_DOUBLE_EQ(all.numbers - forward.numbers, row.backward * part);
    }
  }
}

}  // namespace
