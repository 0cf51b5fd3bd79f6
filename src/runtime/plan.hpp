// Plans: compiled programs, kept so that a repeated call does no parsing, solving or planning.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ein/cost.hpp>
#include <ein/graph.hpp>
#include <ein/tensor.hpp>
#include "cpu/kernel.hpp"
#include "passes/contraction_order.hpp"

namespace ein::engine {

/// Tensors by address: a call copies none of its operands.
using Operands = std::span<const Tensor* const>;

/// A program with a kernel for each of its nests.
struct Plan {
  Program program;
  std::vector<std::unique_ptr<cpu::Kernel>> kernels;
  std::string call;  // what it computes, for people
  Cost cost;         // of the nests
  /// Bytes that a run allocates at its peak: all buffers, and the largest workspace of a kernel.
  std::size_t peak_bytes = 0;
};

/// A kernel for each nest, and the nests' cost.
std::shared_ptr<const Plan> make_plan(std::string call, Program program);
/// Runs all passes on `graph`, for operands that lie as these do.
std::shared_ptr<const Plan> make_plan(std::string call, const Graph& graph, Operands operands,
                                      const OrderOptions& options = {});

/// Runs a plan on operands that lie as those it was made for.
std::vector<Tensor> run(const Plan& plan, Operands operands);

/// What a plan depends on, as a list of words. Kept per thread: one key at a time.
class PlanKey {
 public:
  PlanKey();
  void add(std::int64_t word) { words_.push_back(word); }
  void add(std::string_view text);
  /// The dtype, shape and strides.
  void add(const Tensor& operand);
  std::span<const std::int64_t> words() const { return words_; }

 private:
  std::vector<std::int64_t>& words_;
};

/// The plan kept under a key, or null. Thread-safe.
std::shared_ptr<const Plan> find_plan(const PlanKey& key);
/// Keeps a plan under a key. The number of plans is bounded; old ones are dropped.
void keep_plan(const PlanKey& key, std::shared_ptr<const Plan> plan);

/// The plan under `key`; if there is none, the one of the graph that `build` returns, kept. call() says what
/// it computes.
template <class Call, class Build>
std::shared_ptr<const Plan> plan_for(const PlanKey& key, Operands operands, Call&& call, Build&& build,
                                     const OrderOptions& options = {}) {
  if (auto plan = find_plan(key)) return plan;
  // build() and the passes may call operations, which use the thread's key.
  const std::vector<std::int64_t> words(key.words().begin(), key.words().end());
  auto plan = make_plan(call(), build(), operands, options);
  PlanKey again;
  for (std::int64_t word : words) again.add(word);
  keep_plan(again, plan);
  return plan;
}

}  // namespace ein::engine
