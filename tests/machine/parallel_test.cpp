#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "cpu/gemm.hpp"
#include "machine/parallel.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using namespace ein::literals;
using test::get_values;
using test::make_tensor;

/// Restores the number of threads.
class ParallelTest : public testing::Test {
 protected:
  ~ParallelTest() override { set_num_threads(before_); }

 private:
  int before_ = num_threads();
};

TEST_F(ParallelTest, EveryPartRunsOnce) {
  for (int threads : {1, 2, 4}) {
    set_num_threads(threads);
    EXPECT_EQ(num_threads(), threads);
    for (std::int64_t parts : {0, 1, 2, 3, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(parts));
      host::parallel_for(parts, [&](std::int64_t part) { ++runs[static_cast<std::size_t>(part)]; });
      for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST_F(ParallelTest, PartsInsideOfPartsRunToo) {
  set_num_threads(3);
  std::atomic<int> runs{0};
  host::parallel_for(5,
                     [&](std::int64_t) { host::parallel_for(7, [&](std::int64_t) { ++runs; }); });
  EXPECT_EQ(runs, 35);
}

TEST_F(ParallelTest, ExceptionsOfPartsReachTheCaller) {
  for (int threads : {1, 2, 4}) {
    set_num_threads(threads);
    for (std::int64_t bad : {0, 5, 99}) {
      try {
        host::parallel_for(100, [&](std::int64_t part) {
          if (part == bad) throw std::runtime_error("part " + std::to_string(part));
        });
        ADD_FAILURE() << "no exception";
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(error.what(), "part " + std::to_string(bad));
      }
    }
    // All of them at once: one arrives.
    EXPECT_THROW(host::parallel_for(100, [](std::int64_t) { throw std::logic_error("each"); }),
                 std::logic_error);
    // And the pool is as good as before.
    std::atomic<int> runs{0};
    host::parallel_for(100, [&](std::int64_t) { ++runs; });
    EXPECT_EQ(runs, 100);
  }
}

TEST_F(ParallelTest, ImpossibleNumbersOfThreads) {
  const int before = num_threads();
  for (int threads : {0, -1, 1025, INT32_MAX, INT32_MIN}) {
    try {
      set_num_threads(threads);
      ADD_FAILURE() << "no Error for " << threads;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::value);
      EXPECT_NE(std::string(error.what()).find(std::to_string(threads)), std::string::npos)
          << error.what();
    }
  }
  EXPECT_EQ(num_threads(), before);
}

TEST_F(ParallelTest, TheNumberOfThreadsChangesWhileOperationsRun) {
  const Tensor x = full({64, 4096}, 1.0);
  std::atomic<int> changes{0};
  std::thread changer([&] {
    for (; changes < 30; ++changes) set_num_threads(1 + changes % 4);
  });
  while (changes < 30) EXPECT_EQ(get_values(reduce(x, "a b -> a", "sum"))[63], 4096);
  changer.join();
}

TEST_F(ParallelTest, GroupsFollowTheNumberOfThreads) {
  auto f = compile([](const Tensor& x) { return softmax(x, "b [s]"); });
  const Tensor x = rand({600, 300});
  set_num_threads(1);
  const Tensor of_one = f(x);
  const std::size_t memory_of_one = f.memory().workspace;
  ASSERT_GT(memory_of_one, 0u);
  for (int threads : {2, 3, 1, 4}) {
    set_num_threads(threads);
    EXPECT_EQ(get_values(f(x)), get_values(of_one)) << threads;
    EXPECT_EQ(f.memory().workspace, memory_of_one * static_cast<std::size_t>(threads))
        << "each thread has memory of its own";
  }
}

TEST_F(ParallelTest, LimitsAreOfTheThreadThatMakesThem) {
  set_num_threads(4);
  {
    const ThreadLimit two(2);
    EXPECT_EQ(num_threads(), 2);
    {
      const ThreadLimit more(3);
      EXPECT_EQ(num_threads(), 2) << "the lowest holds";
      const ThreadLimit one(1);
      EXPECT_EQ(num_threads(), 1);
    }
    EXPECT_EQ(num_threads(), 2);
    int of_another = 0;
    std::thread([&] { of_another = num_threads(); }).join();
    EXPECT_EQ(of_another, 4);
    set_num_threads(8);
    EXPECT_EQ(num_threads(), 2);
    set_num_threads(1);
    EXPECT_EQ(num_threads(), 1);
  }
  set_num_threads(4);
  EXPECT_EQ(num_threads(), 4);
  for (int threads : {0, -1, 1025}) {
    try {
      const ThreadLimit limit(threads);
      ADD_FAILURE() << "no Error for " << threads;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::value);
      EXPECT_NE(std::string(error.what()).find("ThreadLimit: " + std::to_string(threads)),
                std::string::npos)
          << error.what();
    }
  }
}

TEST_F(ParallelTest, NoMoreThreadsThanTheLimitWork) {
  set_num_threads(4);
  for (int limit : {4, 2, 1, 3, 2, 4}) {
    const ThreadLimit guard(limit);
    for (int call = 0; call < 50; ++call) {
      std::mutex mutex;
      std::set<std::thread::id> at_work;
      std::vector<std::atomic<int>> runs(97);
      host::parallel_for(97, [&](std::int64_t part) {
        ++runs[static_cast<std::size_t>(part)];
        const std::lock_guard lock(mutex);
        at_work.insert(std::this_thread::get_id());
      });
      for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
      EXPECT_LE(at_work.size(), static_cast<std::size_t>(limit));
    }
  }
}

TEST_F(ParallelTest, ThreadsWithLimitsOfTheirOwnCallAtOnce) {
  set_num_threads(4);
  const Tensor x = rand({64, 3000});
  const std::vector<double> expected = get_values(reduce(x, "a b -> b", "sum"));
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int user = 0; user < 6; ++user) {
    users.emplace_back([&, user] {
      for (int round = 0; round < 40; ++round) {
        const ThreadLimit guard(1 + (user + round) % 4);
        wrong += get_values(reduce(x, "a b -> b", "sum")) != expected;
      }
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

/// What one user does in a loop; the patterns are shared by all, so that they meet in the plan
/// cache.
void use_everything(int user, std::atomic<int>& wrong) {
  const auto expect = [&](bool holds) { wrong += !holds; };
  const double v = user + 1;
  const Tensor a = full({40, 30}, v), b = full({30, 50}, 2.0);
  for (int round = 0; round < 12; ++round) {
    // Sizes of this user and this round alone, and others that everybody has.
    const std::int64_t own = 2 + (user * 12 + round) % 37;
    const Tensor product = einsum(a, b, "i k, k j -> i j");
    expect(product.at({39, 49}).item() == 60 * v);
    expect(einsum(full({own, 3}, v), "i k -> i").at({own - 1}).item() == 3 * v);
    const Tensor moved = rearrange(product, "i (j1 j2) -> (j2 i) j1", "j1"_a = 5);
    expect(moved.shape() == Shape({400, 5}) && moved.at({399, 4}).item() == 60 * v);
    expect(repeat(full({own}, v), "a -> (a 4)").at({4 * own - 1}).item() == v);
    expect(reduce(a, "i k ->", "mean").item() == v);
    expect(reduce(full({300, 300}, v), "i k -> k", "sum").at({299}).item() == 300 * v);
    const Tensor sum = a * 2 + a;
    expect(sum.at({7, 7}).item() == 3 * v);
    expect(a.to(DType::f16).to(DType::i64).at({1, 1}).item<std::int64_t>() == user + 1);
    try {
      einsum(a, a, "i k, k j -> i j");
      expect(false);
    } catch (const Error& error) {
      expect(error.kind() == ErrorKind::size);
    }
  }
}

TEST_F(ParallelTest, ManyUsersShareThePlanCacheAndThePool) {
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    std::atomic<int> wrong{0};
    std::vector<std::thread> users;
    for (int user = 0; user < 6; ++user)
      users.emplace_back([user, &wrong] { use_everything(user, wrong); });
    for (std::thread& user : users) user.join();
    EXPECT_EQ(wrong, 0);
  }
}

// Sizes where products change kernels, and where pieces of them are squares. Eigen's may round
// pieces otherwise.
TEST_F(ParallelTest, ProductsAreTheSameWithAnyNumberOfThreads) {
  test::for_seeds(150, [&](unsigned seed) {
    std::mt19937 random(seed);
    const auto one_of = [&](const auto& from) { return from[random() % std::size(from)]; };
    const Size shorts[] = {1, 2, 3, 5, 8, 15, 16, 17, 40, 90, 520},
               longs[] = {16, 33, 64, 128, 600, 3003}, depths[] = {1, 7, 64, 211, 500, 4000};
    Size m = one_of(longs), n = one_of(shorts);
    if (random() % 2) std::swap(m, n);
    const Size k = m * n > 60000 ? Size(211) : one_of(depths);
    const DType dtype = one_of(std::array{DType::f32, DType::f64, DType::bf16});
    const bool a_turned = random() % 2, b_turned = random() % 2;
    manual_seed(seed);
    const Tensor a = randn(a_turned ? Shape{k, m} : Shape{m, k}).to(dtype),
                 b = randn(b_turned ? Shape{n, k} : Shape{k, n}).to(dtype);
    const auto product = [&](int threads) {
      set_num_threads(threads);
      const Tensor left = a_turned ? a.transpose() : a, right = b_turned ? b.transpose() : b;
      return get_values(einsum(left, right, "i k, k j -> i j"));
    };
    const std::vector<double> want = product(1);
    const double most =
        host::products_are_by_eigen() ? 0.05 * std::sqrt(static_cast<double>(k)) : 0;
    for (const int threads : {2, 3, 5}) {
      const std::vector<double> got = product(threads);
      for (std::size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], most)
            << m << " x " << n << " x " << k << ' ' << name(dtype) << ' ' << a_turned << b_turned
            << ", " << threads << " threads";
    }
  });
}

TEST_F(ParallelTest, UsersShareTensorsThatTheyRead) {
  set_num_threads(2);
  const Tensor x = make_tensor(std::vector<double>(20000, 0.5), {100, 200});
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&, y = x] {
      for (int round = 0; round < 10; ++round) {
        wrong += einsum(y, y, "i k, j k -> i j").at({99, 99}).item() != 50;
        wrong += rearrange(x, "a b -> (b a)").numel() != 20000;
        wrong += !rearrange(y, "a b -> b a").same_storage(x);
      }
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ParallelTest, RandomTensorsOfManyUsersAreAllDifferent) {
  std::vector<std::thread> users;
  std::vector<double> first(8);
  for (std::size_t user = 0; user < first.size(); ++user) {
    users.emplace_back([&, user] { first[user] = get_values(rand({1000}, DType::f64))[0]; });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(std::set<double>(first.begin(), first.end()).size(), first.size());
}

TEST_F(ParallelTest, ErrorsOfAnOperationLeaveThePoolUsable) {
  set_num_threads(4);
  const Tensor x = ones({100, 100});
  for (int i = 0; i < 20; ++i) {
    EXPECT_THROW(einsum(x, x, runtime("a b, b c -> a z")), Error);
    EXPECT_EQ(reduce(x, "a b ->", "sum").item(), 10000);
  }
}

}  // namespace
}  // namespace ein
