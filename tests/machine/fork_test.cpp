// fork(): a child has threads of its own, finds no lock taken, and ends.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <ein/compile.hpp>
#include <ein/data.hpp>
#include <ein/ein.hpp>
#include <ein/parallel.hpp>
#include "support/sanitized.hpp"
#include "support/tensor_values.hpp"

namespace {
bool is_child = false;
}
/// A sanitizer's question before it looks for leaks. In a child, exit() leaves what the callers'
/// stacks hold, and the memory of threads that only the parent has: neither is a leak.
extern "C" int __lsan_is_turned_off() { return is_child; }

namespace ein {
namespace {

using test::get_values;

/// Restores the number of threads.
class ForkTest : public testing::Test {
 protected:
  ForkTest() {
    set_num_threads(2);
    matmul(ones({256, 256}), ones({256, 256}));  // the pool is used
  }
  ~ForkTest() override { set_num_threads(before_); }

 private:
  int before_ = num_threads();
};

/// What became of a child that does this and then ends with the number it returns, if it has not
/// before: "" for 0.
template <class F>
std::string in_child(F&& f, unsigned seconds = 20) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    is_child = true;
    ::alarm(seconds);
    try {
      ::_exit(f());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in a child: %s\n", error.what());
      ::_exit(99);
    }
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGALRM ? "hangs"
                                       : "dies of signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "ends with " + std::to_string(WEXITSTATUS(status));
}

double sum_of_product(std::int64_t n) {
  return reduce(matmul(full({n, n}, 2.0), ones({n, n})), "a b ->", "sum").item();
}

TEST_F(ForkTest, AChildComputes) {
  EXPECT_EQ(in_child([] {
              return sum_of_product(256) == 2.0 * 256 * 256 * 256 && num_threads() == 2 ? 0 : 1;
            }),
            "");
  EXPECT_EQ(sum_of_product(256), 2.0 * 256 * 256 * 256);
}

TEST_F(ForkTest, AChildChangesTheNumberOfThreads) {
  EXPECT_EQ(in_child([] {
              set_num_threads(3);
              return num_threads() == 3 && sum_of_product(256) == 2.0 * 256 * 256 * 256 ? 0 : 1;
            }),
            "");
}

TEST_F(ForkTest, AChildExits) {
  EXPECT_EQ(in_child([]() -> int { std::exit(0); }), "") << "at once";
  EXPECT_EQ(in_child([]() -> int {
              sum_of_product(256);
              std::exit(0);
            }),
            "")
      << "after it computed";
  EXPECT_EQ(in_child([]() -> int {
              new std::thread([] { ::sleep(100); });
              std::exit(0);
            }),
            "")
      << "beside a thread";
  EXPECT_EQ(in_child([]() -> int {
              std::thread([] {}).join();
              std::exit(0);
            }),
            "")
      << "after a thread";
}

TEST_F(ForkTest, AChildHasAChild) {
  EXPECT_EQ(
      in_child([] {
        sum_of_product(128);
        return in_child([] { return sum_of_product(256) == 2.0 * 256 * 256 * 256 ? 0 : 1; }).empty()
                   ? 0
                   : 2;
      }),
      "");
}

/// Takes most locks: those of plans that are new and old, of machine code, of random numbers, of
/// memory, of a compiled function.
template <class F>
bool uses_everything(std::int64_t n, F& f) {
  const Tensor x = rand({n, 64});
  const Tensor old = full({64, 64}, 1.0);
  bool holds = reduce(softmax(x, "b [s]"), "b s ->", "sum").item() > 0.9 * static_cast<double>(n);
  holds &= reduce(einsum(x, old, "b k, k n -> b n"), "b n ->", "sum").item() > 0;
  const Tensor w = rand({64, 8}).requires_grad(true);
  reduce(matmul(x, w), "b n ->", "sum").backward();
  holds &= w.grad().shape() == Shape({64, 8});
  holds &= f(old).at({3, 3}).item() == 3;
  return holds;
}

TEST_F(ForkTest, OtherThreadsComputeMeanwhile) {
  // A program of threads that call new and delete, and of children that do, hangs with GCC 12's
  // AddressSanitizer.
  if (test::is_sanitized())
    GTEST_SKIP() << "the locks of its malloc stay taken where another thread had them";
  auto f = compile([](const Tensor& x) { return x * 2.0 + 1.0; });
  std::atomic<bool> stops{false};
  std::atomic<std::int64_t> size{1};
  std::vector<std::thread> users;
  for (int user = 0; user < 3; ++user) {
    users.emplace_back([&] {
      while (!stops) uses_everything(size++ % 2000 + 1, f);
    });
  }
  for (int round = 0; round < 40; ++round) {
    const std::string end = in_child(
        [&] { return uses_everything(size % 2000 + 1, f) && uses_everything(3000, f) ? 0 : 1; });
    EXPECT_EQ(end, "") << "round " << round;
    if (!end.empty()) break;
  }
  stops = true;
  for (std::thread& user : users) user.join();
}

TEST_F(ForkTest, AnotherThreadTracesMeanwhile) {
  std::binary_semaphore traces(0), may_go_on(0);
  std::atomic<bool> waits{true};
  auto f = compile([&](const Tensor& x) {
    if (waits) {
      traces.release();
      may_go_on.acquire();
    }
    return x * 2.0;
  });
  std::thread tracer([&] { f(ones({4})); });
  traces.acquire();
  EXPECT_EQ(in_child([&] {
              waits = false;
              return f(ones({4})).at({0}).item() == 2 ? 0 : 1;
            }),
            "");
  waits = false;
  may_go_on.release();
  tracer.join();
}

TEST_F(ForkTest, ATracedFunctionForks) {
  std::string end = "did not fork";
  auto f = compile([&](const Tensor& x) {
    end = in_child([] {
      double result = 0;
      std::thread([&] { result = sum_of_product(128); }).join();  // this thread traces on
      return result == 2.0 * 128 * 128 * 128 ? 0 : 1;
    });
    return x * 2.0;
  });
  EXPECT_EQ(f(ones({4})).at({0}).item(), 2);
  EXPECT_EQ(end, "");
}

std::unique_ptr<Prefetcher> prefetcher() {
  return std::make_unique<Prefetcher>(BatchSampler(Tokens(zeros({200000}, DType::u8)), 64, 512, 1));
}

TEST_F(ForkTest, APrefetcherOfTheParent) {
  auto batches = prefetcher();
  batches->next();
  EXPECT_EQ(in_child([&] {
              try {
                batches->next();
                return 1;
              } catch (const Error& error) {
                const std::string text = error.what();
                if (text.find("fork()") == std::string::npos ||
                    text.find("position 1") == std::string::npos)
                  return 2;
              }
              batches.reset();
              auto own = prefetcher();
              return own->next().x.shape() == Shape({64, 512}) ? 0 : 3;
            }),
            "");
  EXPECT_EQ(batches->next().x.shape(), Shape({64, 512}));
}

std::unique_ptr<Prefetcher> destroyed_at_exit;  // after the pool

TEST_F(ForkTest, ExitWhileAPrefetcherWorks) {
  for (bool uses_pool : {false, true}) {
    for (bool leaks : {false, true}) {
      EXPECT_EQ(in_child([&]() -> int {
                  if (uses_pool) sum_of_product(256);
                  destroyed_at_exit = prefetcher();
                  destroyed_at_exit->next();
                  [[maybe_unused]] const Prefetcher* const leaked =
                      leaks ? destroyed_at_exit.release() : nullptr;
                  std::exit(0);
                }),
                "")
          << (uses_pool ? "with a pool, " : "without a pool, ")
          << (leaks ? "at work" : "destroyed at exit");
    }
  }
}

}  // namespace
}  // namespace ein
