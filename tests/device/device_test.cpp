// Tensors on a GPU: where they lie, what they hold, and what is refused.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/safetensors.hpp>

#include "support/expect_error.hpp"
#include "support/fake_counts.hpp"
#include "support/scratch.hpp"

namespace ein {
namespace {

using test::expect_error;

TEST(Device, Names) {
  EXPECT_EQ(to_string(cpu), "cpu");
  EXPECT_EQ(to_string(cuda), "cuda:0");
  EXPECT_EQ(to_string(cuda(1)), "cuda:1");
  EXPECT_EQ(cuda, cuda(0));
  EXPECT_NE(cuda, cuda(1));
  EXPECT_NE(cuda, cpu);
  EXPECT_EQ(device_count(cpu), 1);
  EXPECT_GE(device_count(), 1);
  static_assert(cuda(3).index() == 3 && &cuda(3).kind() == &cuda.kind());
}

TEST(Device, MovesThereAndBack) {
  const Tensor x = randn({3, 5});
  EXPECT_EQ(x.device(), cpu);
  const Tensor there = x.to(cuda);
  EXPECT_EQ(there.device(), cuda);
  EXPECT_EQ(there.shape(), x.shape());
  EXPECT_TRUE(all_close(there.to(cpu), x, 0, 0));
  EXPECT_TRUE(there.to(cuda).same_storage(there));
  EXPECT_EQ(there.to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(there.at({1, 2}).item<float>(), x.at({1, 2}).item<float>());
  EXPECT_EQ(to_string(there), to_string(x));
  EXPECT_EQ(empty({0, 4}, cuda).to(cpu).shape(), (Shape{0, 4}));
  EXPECT_EQ(from_vector(std::vector<float>{1, 2}, cuda).device(), cuda);
}

TEST(Device, LargeCopiesGoInPieces) {
  const std::int64_t n = (9 << 20) + 3;  // more than twice the pinned memory
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
  const Tensor there = from_vector(bytes, cuda);
  EXPECT_EQ(there.to_vector<std::uint8_t>(), bytes);
}

TEST(Device, ViewsOfTensorsThere) {
  const Tensor x = arange(60).view({3, 4, 5}), there = x.to(cuda);
  EXPECT_TRUE(rearrange(there, "a b c -> c b a").same_storage(there));
  EXPECT_EQ(rearrange(there, "a b c -> c b a").to_vector<std::int64_t>(),
            rearrange(x, "a b c -> c b a").to_vector<std::int64_t>());
  EXPECT_EQ(there.at({every, slice(1, 3), slice(1, 5, 2)}).to_vector<std::int64_t>(),
            x.at({every, slice(1, 3), slice(1, 5, 2)}).to_vector<std::int64_t>());
}

TEST(Device, TheHostCannotReachIt) {
  const Tensor x = zeros({2, 3}, cuda);
  expect_error([&] { x.data<float>(); }, ErrorKind::device, {"(2, 3)", "cuda:0", ".to(ein::cpu)"});
  expect_error([&] { x.raw_data(); }, ErrorKind::device, {"cuda:0"});
}

TEST(Device, OperandsLieOnOne) {
  const Tensor here = ones({2, 3}), there = ones({2, 3}, cuda);
  expect_error([&] { einsum(here, there, "i j, i j -> i"); }, ErrorKind::device,
               {"einsum", "operand 1 of shape (2, 3) on cpu", "operand 2 of shape (2, 3) on cuda:0",
                "help"});
  expect_error([&] { there + here; }, ErrorKind::device,
               {"add", "operand 2 of shape (2, 3) on cpu"});
  if (device_count() > 1) {
    expect_error([&] { there + ones({2, 3}, cuda(1)); }, ErrorKind::device, {"cuda:0", "cuda:1"});
  }
  EXPECT_EQ((there + 1).device(), cuda);
}

TEST(Device, SeveralDevices) {
  if (device_count() < 2) GTEST_SKIP() << "one GPU";
  const Tensor x = randn({7}), there = x.to(cuda(1));
  EXPECT_EQ(there.device(), cuda(1));
  EXPECT_EQ((there * 2).device(), cuda(1));
  EXPECT_TRUE(all_close(there.to(cuda).to(cpu), x, 0, 0));
  EXPECT_TRUE(all_close((there * 2).to(cpu), x * 2, 0, 0));
}

TEST(Device, EachHasItsOwn) {
  if (device_count() < 2) GTEST_SKIP() << "one GPU";
  const std::size_t first = memory_allocated(cuda), second = memory_allocated(cuda(1));
  const Tensor x = randn({300}), a = x.to(cuda), b = x.to(cuda(1));
  EXPECT_EQ(memory_allocated(cuda) - first, 1200u);
  EXPECT_EQ(memory_allocated(cuda(1)) - second, 1200u);
  // A function is compiled for each, with modules and memory of its own.
  auto f = compile([](const Tensor& t) {
    const Tensor centred = t - reduce(t, "i -> 1", Reduction::mean);
    return exp(centred) + rand(t.shape(), t.device());
  });
  for (int run = 0; run < 3; ++run) {
    manual_seed(9);
    const Tensor here = f(x);
    manual_seed(9);
    const Tensor there = f(a);
    manual_seed(9);
    const Tensor beyond = f(b);
    EXPECT_EQ(there.device(), cuda);
    EXPECT_EQ(beyond.device(), cuda(1));
    EXPECT_EQ(there.to_vector<float>(), beyond.to_vector<float>());
    EXPECT_TRUE(all_close(beyond.to(cpu), here, 1e-5, 1e-5));
  }
  // A fault of one is not the other's.
  const Tensor wrong = from_vector(std::vector<std::int64_t>{300}, cuda(1));
  expect_error([&] { gather(b, wrong, "[v], n -> n"); }, ErrorKind::value, {"position 300"});
  synchronize(cuda);
  a.copy_from(b * 2);  // from the other
  EXPECT_TRUE(all_close(a.to(cpu), x * 2, 0, 0));
  expect_error([&] { b + a; }, ErrorKind::device, {"cuda:1", "cuda:0"});
}

TEST(Device, ThatThereIsNot) {
  expect_error([] { zeros({1}, cuda(99)); }, ErrorKind::value,
               {"cuda:99", "the number of devices"});
  expect_error([] { zeros({1}, cuda(-1)); }, ErrorKind::value, {"cuda:-1"});
  expect_error([] { empty({1}, DType::f32, cpu(1)); }, ErrorKind::value, {"cpu:1", "one CPU"});
}

TEST(Device, WritesThere) {
  const Tensor x = zeros({2, 3}, cuda);
  x.fill(2);
  x.at({1, slice(1, 3)}).fill(-1);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{2, 2, 2, 2, -1, -1}));
  x.copy_from(ones({2, 3}));  // from the host
  x.at({0}).copy_from(x.at({1}) * 5);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{5, 5, 5, 1, 1, 1}));
  const Tensor here = zeros({2, 3});
  here.copy_from(x);
  EXPECT_EQ(here.to_vector<float>(), x.to_vector<float>());
}

TEST(Device, FilesOfTensorsThere) {
  const test::ScratchDirectory scratch;
  const Tensor x = randn({4, 3}, cuda);
  save_npy(scratch.path("x.npy"), rearrange(x, "a b -> b a"));
  EXPECT_TRUE(all_close(load_npy(scratch.path("x.npy")), rearrange(x, "a b -> b a").to(cpu), 0, 0));
}

TEST(Device, GradientsFlowBetweenDevices) {
  const Tensor x = randn({4}), w = randn({4}, cuda);
  x.requires_grad(true);
  w.requires_grad(true);
  reduce(x.to(cuda) * w, "i ->", Reduction::sum).to(cpu).backward();
  EXPECT_EQ(x.grad().device(), cpu);
  EXPECT_EQ(w.grad().device(), cuda);
  EXPECT_TRUE(all_close(x.grad(), w.detach().to(cpu), 0, 0));
  EXPECT_TRUE(all_close(w.grad().to(cpu), x.detach(), 0, 0));
}

TEST(Device, ModulesMove) {
  struct Tied : nn::Module {
    Tied() : first(ones({2, 3})), second(first) {
      add_parameter("first", first);
      add_parameter("second", second);
      add_module("linear", linear);
    }
    Tensor first, second;
    nn::Linear linear{3, 4};
  } model;
  const std::vector<float> before = model.linear.weight.to_vector<float>();
  model.to(cuda);
  EXPECT_EQ(model.parameters().size(), 3u);  // still one and the same
  for (const Tensor& p : model.parameters()) {
    EXPECT_EQ(p.device(), cuda);
    EXPECT_TRUE(p.requires_grad());
  }
  EXPECT_EQ(model.linear.weight.to_vector<float>(), before);
  EXPECT_EQ(model.linear(ones({1, 3}, cuda)).device(), cuda);
}

TEST(Device, PositionsOutside) {
  const Tensor rows = randn({5, 3}, cuda),
               wrong = from_vector(std::vector<std::int64_t>{1, 5}, cuda);
  expect_error([&] { gather(rows, wrong, "[v] d, n -> n d"); }, ErrorKind::value,
               {"gather", "position 5 is outside an axis of size 5"});
  // Told once, and the device goes on.
  EXPECT_EQ(gather(rows, from_vector(std::vector<std::int64_t>{4}, cuda), "[v] d, n -> n d")
                .to_vector<float>(),
            rows.at({4}).to_vector<float>());
}

TEST(Device, PositionsOutsideInACompiledFunction) {
  auto rows_at =
      compile([](const Tensor& x, const Tensor& i) { return gather(x, i, "[v] d, n -> n d"); });
  const Tensor rows = randn({5, 3}, cuda);
  const Tensor result = rows_at(rows, from_vector(std::vector<std::int64_t>{-1, 2}, cuda));
  expect_error([&] { result.to(cpu); }, ErrorKind::value,
               {"cuda:0", "position -1 is outside an axis of size 5"});
  const Tensor good = rows_at(rows, from_vector(std::vector<std::int64_t>{3, 2}, cuda));
  EXPECT_EQ(good.at({0}).to_vector<float>(), rows.at({3}).to_vector<float>());
}

TEST(Device, WhatFailsThereIsTold) {
  if (std::getenv("EIN_TEST_GPU")) GTEST_SKIP() << "only the stand-in goes on after that";
  const Tensor x = ones({10}, cuda);
  ::setenv("FAKE_CUDA", "kernel=700", 1);
  const Tensor y = x + 1;
  expect_error([&] { y.to(cpu); }, ErrorKind::device,
               {"cuda:0", "CUDA_ERROR_ILLEGAL_ADDRESS", "compute-sanitizer"});
  expect_error([&] { synchronize(cuda); }, ErrorKind::device,
               {"cuda:0", "CUDA_ERROR_ILLEGAL_ADDRESS"});
  ::setenv("FAKE_CUDA", "cuLaunchKernel=701", 1);
  expect_error([&] { x + 1; }, ErrorKind::device,
               {"cuLaunchKernel", "701", "a block wants more registers"});
  ::setenv("FAKE_CUDA", "cuModuleLoadData=209", 1);
  expect_error([&] { x * 3 - 1; }, ErrorKind::device, {"cuModuleLoadData", "update the driver"});
  ::unsetenv("FAKE_CUDA");
  EXPECT_EQ((x * 3 - 1).at({0}).item(), 2);
}

TEST(Device, CallsOfManyThreads) {
  const Tensor here = randn({40, 33}), there = here.to(cuda);
  const std::vector<float> want =
      reduce(rearrange(here * 2, "i j -> j i"), "j i -> j", Reduction::max).to_vector<float>();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int& mine : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        mine += reduce(rearrange(there * 2, "i j -> j i"), "j i -> j", Reduction::max)
                    .to_vector<float>() != want;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

// Numbers of calls are arguments: a schedule's next learning rate compiles nothing.
TEST(Device, OtherNumbersAreTheSameKernels) {
  const Tensor x = rand({5, 7}, DType::f32), y = x.to(cuda), n = arange(9), m = n.to(cuda);
  const auto call = [](const Tensor& f, const Tensor& i, double a) {
    const Tensor rate = zeros({}, DType::f64, f.device()),
                 half = zeros({3}, DType::f16, f.device());
    rate.fill(a);
    half.fill(-a);
    const auto whole = static_cast<std::int64_t>(10 * a);
    return std::vector<Tensor>{
        f * a + 2 * a, clamp(f, a / 8, a / 8 + 0.5), rate,
        half,          i * whole - 3 * whole,        full({2}, a, DType::bf16, f.device()),
        pow(f, a),     f.to(DType::f64) / a};
  };
  int modules = 0;
  for (const double a : {0.3, 2.5, -7.75, 0.625}) {
    SCOPED_TRACE(a);
    const std::vector<Tensor> here = call(x, n, a), there = call(y, m, a);
    for (std::size_t i = 0; i < here.size(); ++i)
      EXPECT_TRUE(all_close(there[i].to(cpu), here[i], 1e-6, 1e-6)) << i;
    // A power's exponent stays in the text.
    const int loaded = test::fake_count("modules");
    EXPECT_TRUE(a == 0.3 || loaded - modules <= 1) << loaded - modules;
    modules = loaded;
  }
}

TEST(DeviceMemory, CountsWhatIsAlive) {
  const std::size_t before = memory_allocated(cuda), here = memory_allocated();
  {
    const Tensor x = empty({1000}, cuda), y = empty({3, 1000}, DType::f64, cuda);
    EXPECT_EQ(memory_allocated(cuda) - before, 4000u + 24000u);
    EXPECT_GE(memory_reserved(cuda), memory_allocated(cuda));
    EXPECT_EQ(memory_allocated(), here);
    reset_max_memory_allocated(cuda);
    { const Tensor z = empty({500}, cuda); }
    EXPECT_EQ(max_memory_allocated(cuda) - before, 4000u + 24000u + 2000u);
  }
  EXPECT_EQ(memory_allocated(cuda), before);
  const std::size_t reserved = memory_reserved(cuda);
  { const Tensor again = empty({1000}, cuda); }
  EXPECT_EQ(memory_reserved(cuda), reserved);
  release_memory(cuda);
  EXPECT_LT(memory_reserved(cuda), reserved);
}

TEST(DeviceMemory, FromManyThreads) {
  const std::size_t before = memory_allocated(cuda);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 50; ++i) {
        const std::vector<std::int32_t> values(static_cast<std::size_t>(17 * t + i + 1),
                                               100 * t + i);
        wrong[static_cast<std::size_t>(t)] +=
            from_vector(values, cuda).to_vector<std::int32_t>() != values;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
  EXPECT_EQ(memory_allocated(cuda), before);
}

TEST(DeviceMemory, RunsOutAndGoesOn) {
  if (std::getenv("EIN_TEST_GPU")) GTEST_SKIP() << "the stand-in's memory can be made small";
  release_memory(cuda);
  const std::size_t held = memory_reserved(cuda);
  ::setenv("FAKE_CUDA", ("memory=" + std::to_string(held + (3 << 20))).c_str(), 1);
  {
    { const Tensor kept_to_be_used_again = empty({1 << 19}, cuda); }  // 2 MiB
    // Another class of size: only what is given back makes room.
    const Tensor x = empty({(1 << 19) + (1 << 17)}, cuda);
    EXPECT_EQ(x.nbytes(), std::size_t{5} << 19);
    expect_error([] { empty({1 << 20}, cuda); }, ErrorKind::memory,
                 {"cuda:0", "4194304 bytes", "are free", "out of memory", "let go of tensors",
                  std::to_string(memory_allocated(cuda)) + " bytes are in use by tensors"});
  }
  ::unsetenv("FAKE_CUDA");
  EXPECT_EQ(empty({1 << 20}, cuda).nbytes(), std::size_t{4} << 20);
}

}  // namespace
}  // namespace ein
