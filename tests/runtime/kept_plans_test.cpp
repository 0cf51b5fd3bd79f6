// Plans that are kept: how much they hold, that this is bounded whatever is called, and that a plan
// that was dropped is made again.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>

#ifdef __GLIBC__
#include <dlfcn.h>
#include <malloc.h>
#define EIN_HEAP_CAN_BE_MEASURED 1
#endif

namespace ein {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// `plan_limit()` is another while it lives.
class Limit {
 public:
  explicit Limit(std::size_t bytes) : before_(plan_limit()) { set_plan_limit(bytes); }
  ~Limit() { set_plan_limit(before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  std::size_t before_;
};

/// "q7_0, q7_1 -> q7_0 q7_1": a product of so many numbers, by names that no other i has.
std::string long_pattern(int i, int operands) {
  std::string inputs, output;
  for (int k = 0; k < operands; ++k) {
    const std::string name = " q" + std::to_string(i) + "_" + std::to_string(k);
    inputs += (k == 0 ? "" : ",") + name;
    output += name;
  }
  return inputs + " ->" + output;
}

/// A call that is another one for each i, and what it should give.
struct Kind {
  const char* name;
  std::function<double(int)> call;
  double expected;
};

double total(const Tensor& x) { return reduce(x.to(DType::f64), "... ->", "sum").item(); }

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kinds = {
      {"names of axes",
       [](int i) {
         const std::string n = "a" + std::to_string(i);
         return total(rearrange(ones({4, 6, 5}), runtime(n + " b c -> c b " + n)));
       },
       120},
      {"many operands",
       [](int i) {
         return total(einsum(std::vector<Tensor>(40, ones({1})), runtime(long_pattern(i, 40))));
       },
       1},
      {"spaces",
       [](int i) {
         return total(einsum(ones({3, 4}), ones({4, 5}),
                             runtime("a b, b c -> " + std::string(1 + i, ' ') + "a c")));
       },
       60},
      {"shapes of a softmax",
       [](int i) {
         return total(softmax(ones({8, 3 + i}), "a [b]"));
       },
       8},
      {"shapes of a variance",
       [](int i) {
         return total(reduce(ones({3 + i, 8}), "a b -> b", "var"));
       },
       0},
      {"shapes of a product",
       [](int i) {
         return total(einsum(ones({2, 3 + i}), eye(3 + i), "a b, b c -> a c")) / (3 + i);
       },
       2},
      {"orders",
       [](int i) {
         return total(sort(ones({3 + i, 2}), "[a] b").values) / (3 + i);
       },
       2},
      {"cumulative sums",
       [](int i) { return total(cumsum(eye(3 + i), "a [b]")) * 2 / ((3 + i) * (4 + i)); }, 1},
      {"gradients",
       [](int i) {
         const Tensor x = ones({3 + i, 4}).requires_grad(true);
         reduce(x * x, "a b ->", "sum").backward();
         return total(x.grad()) / (3 + i);
       },
       8},
      {"a compiled function",
       [](int i) {
         static auto f = compile([](const Tensor& x) {
           Tensor y = x;
           for (int k = 0; k < 30; ++k) y = softmax(y + 1.0, "a [b]");
           return reduce(y, "a b -> a", "sum");
         });
         return total(f(ones({3 + i, 5}))) / (3 + i);
       },
       1},
  };
  return kinds;
}

class EachKind : public testing::TestWithParam<std::size_t> {
 protected:
  const Kind& kind() const { return kinds()[GetParam()]; }
  double call(int i) const { return kind().call(i); }
};

INSTANTIATE_TEST_SUITE_P(KeptPlans, EachKind, testing::Range<std::size_t>(0, 10));

TEST(KeptPlans, KindsAreAllTested) { EXPECT_EQ(kinds().size(), 10u); }

#ifdef EIN_HEAP_CAN_BE_MEASURED
std::size_t heap() {
  release_memory();  // of tensors
  // A sanitizer has a heap of its own, and counts it.
  if (void* const count = ::dlsym(RTLD_DEFAULT, "__sanitizer_get_current_allocated_bytes"))
    return reinterpret_cast<std::size_t (*)()>(count)();
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST_P(EachKind, HoldsWhatIsCounted) {
  SCOPED_TRACE(kind().name);
  release_plans();
  call(0);
  const std::size_t counted_before = plan_bytes(), heap_before = heap();
  for (int i = 1; i <= 60; ++i) call(i);
  const auto counted = static_cast<double>(plan_bytes() - counted_before),
             measured = static_cast<double>(heap() - heap_before);
  EXPECT_GT(counted, 0.7 * measured);
  EXPECT_LT(counted, 1.8 * measured + 60 * 4096);  // code is not on the heap
  release_plans();
  EXPECT_LT(static_cast<double>(plan_bytes()), static_cast<double>(counted_before) + 0.1 * counted);
  EXPECT_LT(static_cast<double>(heap()), static_cast<double>(heap_before) + 0.2 * measured);
}
#endif

TEST_P(EachKind, IsBounded) {
  SCOPED_TRACE(kind().name);
  release_plans();
  const std::size_t in_use = plan_bytes();
  const Limit limit(in_use + mib);
  std::size_t most = 0, sum = 0;
  for (int i = 0; i < 200 || (sum < 3 * mib && i < 3000); ++i) {
    const std::size_t before = plan_bytes();
    ASSERT_NEAR(call(i), kind().expected, 1e-3) << i;
    if (plan_bytes() > before) sum += plan_bytes() - before;
    most = std::max(most, plan_bytes());
  }
  EXPECT_GE(sum, 3 * mib) << "the limit was not reached";
  EXPECT_LE(most, plan_limit());
}

TEST(KeptPlans, AreBoundedBy256MiB) { EXPECT_EQ(plan_limit(), 256 * mib); }

TEST(KeptPlans, GoInTheOrderOfTheirLastUse) {
  release_plans();
  const Kind& long_patterns = kinds()[1];
  const auto is_kept = [&](int i) {
    const std::size_t before = plan_bytes();
    long_patterns.call(i);
    return plan_bytes() == before;
  };
  long_patterns.call(0);
  const std::size_t of_one = plan_bytes();
  long_patterns.call(1);
  EXPECT_TRUE(is_kept(0));
  EXPECT_TRUE(is_kept(1));
  // Full at half a plan below the limit: the plan that fills a new tensor, which ones() makes for
  // each call and nobody keeps, counts while it lives.
  const std::size_t each = plan_bytes() - of_one;
  const Limit limit(plan_bytes() + 10 * each + each / 2);
  for (int i = 2; i < 100; ++i) {
    long_patterns.call(i);
    EXPECT_TRUE(is_kept(0)) << i;
  }
  EXPECT_FALSE(is_kept(1));
  EXPECT_TRUE(is_kept(0));
}

TEST(KeptPlans, OfOtherThreadsGoToo) {
  release_plans();
  const std::size_t before = plan_bytes();
  std::atomic<int> step{0};
  std::thread other([&] {
    kinds()[3].call(1);
    step = 1;
    step.notify_all();
    step.wait(1);
    kinds()[3].call(1);
  });
  step.wait(0);
  EXPECT_GT(plan_bytes(), before);
  release_plans();
  EXPECT_EQ(plan_bytes(), before);
  step = 2;
  step.notify_all();
  other.join();
}

TEST(KeptPlans, InUseOutliveTheirRelease) {
  const Tensor x = full({5, 7}, 2.0).requires_grad(true);
  const Tensor y = reduce(softmax(x * x, "a [b]") * x, "a b ->", "sum");
  release_plans();
  y.backward();
  EXPECT_NEAR(total(x.grad()), 5, 1e-5);

  auto f = compile([](const Tensor& a) { return softmax(a, "a [b]"); });
  EXPECT_NEAR(total(f(ones({2, 3}))), 2, 1e-5);
  EXPECT_NEAR(total(f(ones({4, 3}))), 4, 1e-5);
  const std::string text = f.text();
  release_plans();
  EXPECT_EQ(f.text(), text);
  EXPECT_NEAR(total(f(ones({2, 3}))), 2, 1e-5);
}

TEST(KeptPlans, AreReleasedWhileCompiledFunctionsComeAndGo) {
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      release_plans();
      release_memory();
    }
  });
  for (int i = 0; i < 500'000; ++i) compile([](const Tensor& x) { return x + 1.0; });
  done = true;
  other.join();
}

TEST(KeptPlans, OfManyThreadsAreBounded) {
  release_plans();
  const Limit limit(plan_bytes() + mib);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 150; ++i) {
        const Kind& kind = kinds()[static_cast<std::size_t>(i + t) % 6];
        if (std::abs(kind.call(i / 2) - kind.expected) > 1e-3) ++wrong;
        if (i % 40 == 10 * t) release_plans();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  set_plan_limit(plan_limit());
  EXPECT_LE(plan_bytes(), plan_limit());
}

}  // namespace
}  // namespace ein
