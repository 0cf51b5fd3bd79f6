// Threads that call ein at the same time: every kind of call beside every other, and a compiled
// function beside those who ask what it is (docs/threads.md). The thread sanitizer watches both.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/parallel.hpp>
#include "support/all_calls.hpp"
#include "support/project.hpp"
#include "support/scratch.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

/// All calls in an order of the seed's; what failed, or "".
std::string failing_call_in_random_order(unsigned seed) {
  const test::ScratchDirectory folder;
  std::vector<std::size_t> order(std::size(test::all_calls));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  for (const std::size_t i : order) {
    const test::NamedCheck& check = test::all_calls[i];
    try {
      if (!check.holds(folder.path().string())) return std::string(check.name) + " differs";
    } catch (const std::exception& error) {
      return std::string(check.name) + ": " + error.what();
    }
  }
  return "";
}

TEST(Threads, AllCallsAtOnce) {
  const int before = num_threads();
  test::for_seeds(2, [](unsigned seed) {
    constexpr unsigned count = 3;
    std::vector<std::string> failures(count);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < count; ++i) {
      threads.emplace_back(
          [&, i] { failures[i] = failing_call_in_random_order(seed * count + i); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, std::vector<std::string>(count));
  });
  set_num_threads(before);
}

/// What a function's description has, as a number that every program of the test gives.
template <class F>
std::size_t size_of_description(const F& f) {
  EXPECT_NE(f.text().find("reduce"), std::string::npos);
  EXPECT_NE(f.dot().find("digraph"), std::string::npos);
  EXPECT_NE(f.svg().find("<svg"), std::string::npos);
  EXPECT_GT(f.memory().peak(), 0u);
  EXPECT_FALSE(f.timeline().phases.empty());
  EXPECT_NE(f.bill().total(), Cost());
  EXPECT_NE(f.cost(), Cost());  // perhaps of another program
  EXPECT_TRUE(f.exchanges().empty());
  f.cost_formula();
  f.memory_formula();
  return f.graph().ops.size();
}

TEST(Threads, DescriptionsOfAFunctionThatIsCalled) {
  auto f = compile([](const Tensor& x) { return reduce(x * 2.0, "a b -> b", "sum"); });
  f.keep_at_most(1);
  f(ones({2, 4}));
  const std::size_t size = size_of_description(f);
  std::atomic<bool> ends{false};
  std::thread caller([&] {
    for (int i = 0; i < 60; ++i) f(ones({3 + i % 5, 4}));
    ends = true;
  });
  do {
    EXPECT_EQ(size_of_description(f), size);
  } while (!ends);
  caller.join();
}

TEST(Threads, DescriptionsOutliveTheirPrograms) {
  auto f = compile([](const Tensor& x) { return reduce(x * 2.0, "a b -> b", "sum"); });
  f.keep_at_most(1);
  f(ones({3, 4}));
  const Graph& graph = f.graph();
  const Cost& cost = f.cost();
  const StepBill& bill = f.bill();
  const MemoryPlan& memory = f.memory();
  const std::string text = to_string(graph), of_bill = to_string(bill);
  const Cost first = cost;
  const std::size_t peak = memory.peak();
  f(ones({50, 60}));
  f(ones({70, 60}));
  EXPECT_EQ(to_string(graph), text);
  EXPECT_EQ(to_string(bill), of_bill);
  EXPECT_EQ(cost, first);
  EXPECT_EQ(memory.peak(), peak);
  EXPECT_NE(to_string(f.graph()), text);
}

TEST(Threads, ThePageNamesAllClasses) {
  namespace fs = std::filesystem;
  using test::project;
  const std::string page = test::read_bytes((project / "docs/threads.md").string());
  const std::regex of_class(R"(^(?:template <.*> )?class ([A-Z]\w*)[^;]*\{$)");
  int classes = 0;
  for (const auto& file : fs::recursive_directory_iterator(project / "include")) {
    if (!file.is_regular_file()) continue;
    std::ifstream lines(file.path());
    bool is_detail = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("}")) is_detail = false;
      if (line == "namespace detail {") is_detail = true;
      std::smatch match;
      if (is_detail || !std::regex_match(line, match, of_class)) continue;
      ++classes;
      EXPECT_NE(page.find("`" + match.str(1) + "`"), std::string::npos)
          << match.str(1) << " of " << file.path();
    }
  }
  EXPECT_GT(classes, 50);
}

}  // namespace
}  // namespace ein
